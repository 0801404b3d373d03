# expect: GI401
# advice: Compute table_in_the_constructor.py:13 for each call, in forward or in the method that returns it, before
# advice: table_in_the_constructor.py:17: the constructor runs only once.
# lines: backward=28 freed=28 new=17 old=13
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scores = nn.Parameter(torch.randn(4))
        self.gate = torch.sigmoid(self.scores)  # -
        self.last = nn.Linear(4, 1)

    def forward(self, x):
        return self.last(x * self.gate)  # -
        return self.last(x * torch.sigmoid(self.scores))  # +


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, losses = torch.randn(32, 4), []
for _ in range(20):
    loss = (model(x) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
