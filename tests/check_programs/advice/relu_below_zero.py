# expect: GI601
# why: Its bias both.1.bias was set at relu_below_zero.py:11, and is at most -9.
# advice: set the bias to 0 at relu_below_zero.py:11
# lines: zeroed=18 bias=11
import torch
from torch import nn


def prepare(layer: nn.Module) -> None:
    if isinstance(layer, nn.Linear) and layer.out_features == 1:
        nn.init.constant_(layer.bias, -9.0)  # -
        nn.init.constant_(layer.bias, 0.0)  # +


def counts(x: torch.Tensor) -> torch.Tensor:
    """Predict a number that is not negative."""
    hidden = torch.tanh(first(x))
    return torch.relu(last(hidden))


torch.manual_seed(0)
first, last = nn.Linear(4, 8), nn.Linear(8, 1)
both = nn.Sequential(first, last).apply(prepare)
optimizer = torch.optim.SGD(both.parameters(), lr=0.02)
x = torch.randn(32, 4)
history = []
for _ in range(10):
    loss = (counts(x) - x.abs().sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
