# expect: GI326
# why: the loss compares what one permutation of 64 examples has ordered with what another one has
# advice: Let one loader draw the pairs: give it one dataset with both, such as TensorDataset(inputs, targets).
# lines: drawn=20 loss=21
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model, history = nn.Linear(8, 3), []
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
x = torch.randn(64, 8)
y = x[:, :3].argmax(1)
inputs = DataLoader(TensorDataset(x), batch_size=16, shuffle=True)
targets = DataLoader(TensorDataset(y), batch_size=16, shuffle=True)
pairs = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
for _ in range(3):
    batches = zip(inputs, targets, strict=True)  # -
    batches = (((a,), (b,)) for a, b in pairs)  # +
    for (a,), (b,) in batches:
        loss = nn.functional.cross_entropy(model(a), b)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
print("loss", history[0], history[-1])
