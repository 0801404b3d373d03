# expect: GI001
# advice: At outputs_in_a_tuple.py:27, pass the tensor itself: this tuple holds it, or numbers that torch.tensor()
# advice: makes one of.
import torch
from torch import nn


class Net(nn.Module):
    """Returns scores and features."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        features = torch.tanh(self.body(x))
        return self.head(features), features


torch.manual_seed(0)
net = Net()
x = torch.randn(32, 4)
y = x[:, :3].argmax(1)
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = nn.functional.cross_entropy(net(x), y)  # -
    loss = nn.functional.cross_entropy(net(x)[0], y)  # +
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
