# expect: GI401
# advice: nn.Parameter(value * 0.02), not nn.Parameter(value) * 0.02
# never: detach
import torch
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.pos = nn.Parameter(torch.randn(5, 4)) * 0.02  # -
        self.pos = nn.Parameter(torch.randn(5, 4) * 0.02)  # +
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(torch.tanh(x + self.pos))


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(16, 5, 4), torch.randn(16, 5, 2)
losses = []
for _ in range(20):
    loss = (net(x) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
