# expect: GI383
# why: it is frozen, but trunk.1 updates its running statistics
# advice: Call eval() of trunk again after each train() at undone_eval.py:27.
# lines: eval=24 train=27
import torch
from torch import nn


class Probe(nn.Module):
    def __init__(self, trunk):
        super().__init__()
        self.trunk = trunk
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.trunk(x).relu())


torch.manual_seed(0)
x, y = torch.randn(32, 4), torch.randint(2, (32,))
trunk = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8))
model = Probe(trunk)
trunk.requires_grad_(False)
trunk.eval()
optimizer = torch.optim.Adam(model.head.parameters(), lr=0.05)
history = []
model.train()
trunk.eval()  # +
for _ in range(8):
    loss = nn.functional.cross_entropy(model(x), y)
    if not history:
        history.append(loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
history.append(loss.item())
print("loss", history[0], history[-1])
