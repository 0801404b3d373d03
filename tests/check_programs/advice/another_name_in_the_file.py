# expect: GI001
# advice: Is it the model that was saved, with the same names? With strict=False, load_state_dict() leaves out what
# advice: only one of both has, and returns it.
import torch
from torch import nn


class Net(nn.Module):
    """A classifier whose head was called fc once."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.body(x)))


torch.manual_seed(0)
state = {name.replace("head", "fc"): one for name, one in Net().state_dict().items()}
net = Net()
net.load_state_dict(state)  # -
net.load_state_dict(state, strict=False)  # +
x = torch.randn(32, 4)
y = x[:, :3].argmax(1)
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = nn.functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
