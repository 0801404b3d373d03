# expect: GI374
# why: sets .requires_grad of trunk, a module
# advice: Call self.trunk.requires_grad_(False)
# lines: set=14 backward=28
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(3, 8)
        self.head = nn.Linear(8, 1)
        self.trunk.requires_grad = False  # -
        self.trunk.requires_grad_(False)  # +

    def forward(self, x):
        return self.head(torch.tanh(self.trunk(x)))


torch.manual_seed(0)
model = Net()
optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.05), []
x = torch.randn(32, 3)
for _ in range(30):
    optimizer.zero_grad()
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
