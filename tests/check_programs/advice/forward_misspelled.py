# expect: GI001
# advice: Define forward(self, ...) in the class itself: it may be misspelled, or indented into __init__.
import torch
from torch import nn


class Net(nn.Module):
    """One layer."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 1)

    def foward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x)

    forward = foward  # +


torch.manual_seed(0)
net = Net()
x = torch.randn(32, 4)
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
