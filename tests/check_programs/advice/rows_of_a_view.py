# expect: GI001
# advice: There are 12 labels, and the first dimension of the scores is 48: keep it in view() and reshape(), as
# advice: flatten(1) does, and flatten a sequence together with its labels.
import torch
from torch import nn


class Net(nn.Module):
    """A convolution, flattened."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3, padding=1)
        self.fc = nn.Linear(2 * 4 * 4, 3)  # -
        self.fc = nn.Linear(2 * 8 * 8, 3)  # +

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(torch.tanh(self.conv(x)).view(-1, 2 * 4 * 4))  # -
        return self.fc(torch.tanh(self.conv(x)).flatten(1))  # +


torch.manual_seed(0)
net = Net()
x = torch.randn(12, 1, 8, 8)
y = torch.arange(12) % 3
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = nn.functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
