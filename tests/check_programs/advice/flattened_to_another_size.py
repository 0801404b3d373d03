# expect: GI001
# advice: Make the layer with 144 input features instead of 100, or bring the last dimension of its input to 100.
import torch
from torch import nn


class Net(nn.Module):
    """Convolution, then a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.fc = nn.Linear(4 * 5 * 5, 1)  # -
        self.fc = nn.Linear(144, 1)  # +

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(torch.tanh(self.conv(x)).flatten(1))


torch.manual_seed(0)
net = Net()
x = torch.randn(16, 1, 8, 8)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
history = []
for _ in range(30):
    loss = (net(x) - x.mean((1, 2, 3)).unsqueeze(1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
