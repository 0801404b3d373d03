# expect: GI372
# advice: Make 3 layers at one_block_three_times.py:12: call the constructor of Linear for each, in a comprehension,
# advice: or use copy.deepcopy(). If they are meant to share, call the one layer in a loop.
# lines: backward=29 made=12
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(4, 4)] * 3)  # -
        self.blocks = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])  # +
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        for block in self.blocks:
            x = torch.relu(block(x))
        return self.head(x)


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
