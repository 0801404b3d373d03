# expect: GI361
# advice: Make blocks an nn.ModuleList or nn.ModuleDict (nn.ParameterList for plain tensors).
# lines: backward=28 made=11 optimizer=23
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = [nn.Linear(8, 8) for _ in range(3)]  # -
        self.blocks = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])  # +
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        for block in self.blocks:
            x = torch.relu(block(x))
        return self.head(x)


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, losses = torch.randn(32, 8), []
for _ in range(20):
    loss = (model(x) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
