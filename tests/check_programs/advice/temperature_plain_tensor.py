# expect: GI361
# expect: GI361
# why: Backward reaches scale, but no optimizer holds it
# advice: Make scale an nn.Parameter
# never: reaches ,
# lines: optimizer=31 made=17
import torch
from torch import nn


class Matcher(nn.Module):
    """Compares two views; the scale of the scores is to be learned."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(6, 4), nn.Linear(6, 4)
        self.scale = torch.tensor(1.0, requires_grad=True)  # -
        self.shift = torch.tensor(0.1, requires_grad=True)  # -
        self.scale = nn.Parameter(torch.tensor(1.0))  # +
        self.shift = nn.Parameter(torch.tensor(0.1))  # +

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Score every pair."""
        u, v = (nn.functional.normalize(half, dim=-1) for half in (self.left(a), self.right(b)))
        return self.scale.exp() * u @ v.T + self.shift * torch.eye(len(a))


torch.manual_seed(0)
matcher = Matcher()
x = torch.randn(8, 6)
optimizer = torch.optim.Adam(matcher.parameters(), lr=0.05)
history = []
for _ in range(20):
    loss = nn.functional.cross_entropy(matcher(x, x + 0.1 * torch.randn(8, 6)), torch.arange(8))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
