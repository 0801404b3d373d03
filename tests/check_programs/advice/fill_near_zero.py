# expect: GI360
# why: fills scores with 1e-09 before a softmax gets them
# advice: At fill_near_zero.py:22, fill them with float('-inf'), or with -1e9 where a whole row may be.
import torch
from torch import nn


class Attention(nn.Module):
    """Each token attends to the tokens of its row."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(8, 8)
        self.key = nn.Linear(8, 8)
        self.value = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Mix the tokens, padding left out."""
        scores = self.query(x) @ self.key(x).transpose(1, 2) / 8**0.5
        is_padding = torch.arange(x.shape[1]) >= lengths[:, None]

        scores = scores.masked_fill(is_padding[:, None], 1e-9)  # -
        scores = scores.masked_fill(is_padding[:, None], float("-inf"))  # +
        return scores.softmax(-1) @ self.value(x)


torch.manual_seed(0)
model = Attention()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
x = torch.randn(4, 6, 8)
lengths = torch.tensor([6, 4, 3, 5])
y = torch.stack([row[:length].mean(0) for row, length in zip(x, lengths, strict=True)])
losses = []
for _ in range(10):
    loss = (model(x, lengths)[:, 0] - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
