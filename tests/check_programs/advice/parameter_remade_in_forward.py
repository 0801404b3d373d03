# expect: GI361
# why: parameter_remade_in_forward.py:22 assigns new ones each time it runs, and optimizer keeps the old ones
# advice: compute the value in a local variable
# never: add_param_group
# lines: optimizer=29 replaced=22
import torch
from torch import nn


class Sparse(nn.Module):
    """A layer with some weights held at zero."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(size, 6) * 0.1), nn.Parameter(torch.zeros(size))
        self.register_buffer("kept", (torch.rand(size, 6) > 0.3).float())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Hold them there."""
        weight = self.weight * self.kept  # +
        return nn.functional.linear(x, weight, self.bias)  # +
        self.weight = nn.Parameter(self.weight * self.kept)  # -
        return nn.functional.linear(x, self.weight, self.bias)  # -


torch.manual_seed(0)
model = nn.Sequential(Sparse(6), nn.Tanh(), Sparse(1))
x = torch.randn(32, 6)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
history = []
for _ in range(10):
    loss = nn.functional.mse_loss(model(x), x[:, :2].sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
