# expect: GI334
# why: The 4 classes follow each other: one stays for 4 batches of about 16 labels
# advice: Shuffle the examples before they become batches: shuffle=True, torch.randperm(n), or a buffer beyond a class.
# lines: loader=14 loss=18
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
y = torch.arange(4).repeat_interleave(64)
x = torch.randn(4, 8)[y] + torch.randn(256, 8)
model, history = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4)), []
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
loader = DataLoader(TensorDataset(x, y), batch_size=16)  # -
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)  # +
for _ in range(2):
    for batch, labels in loader:
        loss = nn.functional.cross_entropy(model(batch), labels)
        history.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print("loss", history[0], history[-1])
