# expect: GI702
# why: heads_merged_by_view.py:28 makes [4, 6, 10] of [4, 2, 6, 5] by a view
# advice: move the heads back first: x.transpose(-3, -2).flatten(-2), where x is what the view is taken of.
# lines: viewed=28
import torch
from torch import nn

torch.manual_seed(0)


class Attention(nn.Module):
    """Two heads of five features each."""

    def __init__(self) -> None:
        super().__init__()
        self.mix, self.out = nn.Linear(10, 30), nn.Linear(10, 3)

    def heads(self, x: torch.Tensor) -> torch.Tensor:
        """Make [batch, heads, time, features] of [batch, time, heads * features]."""
        rows, length, _ = x.shape
        return x.view(rows, length, 2, 5).transpose(1, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Attend, and bring the heads together."""
        rows, length, _ = x.shape
        query, key, value = map(self.heads, self.mix(x).chunk(3, dim=-1))
        found = nn.functional.scaled_dot_product_attention(query, key, value)
        return self.out(found.reshape(rows, length, 10))  # -
        return self.out(found.transpose(-3, -2).flatten(-2))  # +


model = Attention()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x, history = torch.randn(4, 6, 10), []
y = x[..., :3].argmax(-1)
for _ in range(8):
    loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
