# expect: GI389
# why: in each of 8 times it drew the first of 8 batches, which is the same since nothing is shuffled
# advice: Go through all of loader instead of first_batch_again.py:16
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(64, 4)
model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8)
history = []
batches = iter(loader)  # +
for _ in range(8):
    x, y = next(iter(loader))  # -
    x, y = next(batches)  # +
    loss = (model(x) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
