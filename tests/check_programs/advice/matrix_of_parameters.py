# expect: GI301
# advice: each number as a tensor too
# never: torch.stack([[
# lines: detached=21
import torch
from torch import nn


class Rotation(nn.Module):
    """Turns and stretches the plane by one angle and one factor."""

    def __init__(self) -> None:
        super().__init__()
        self.angle, self.factor = nn.Parameter(torch.tensor(0.1)), nn.Parameter(torch.tensor(0.9))
        self.shift = nn.Parameter(torch.zeros(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        zero = torch.tensor(0.0)  # +
        first, second = torch.stack([self.factor, -self.angle]), torch.stack([self.angle, self.factor])  # +
        turn = torch.stack([first, second, torch.stack([zero, zero])])  # +
        turn = torch.tensor([[self.factor, -self.angle], [self.angle, self.factor], [0.0, 0.0]])  # -
        return (x @ turn.T)[:, :2] + self.shift


torch.manual_seed(0)
model = Rotation()
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
x = torch.randn(16, 2)
y = x @ torch.tensor([[1.2, -0.5], [0.5, 1.2]]).T
history = []
for _ in range(10):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
