# expect: GI701
# why: add of [32, 1] and [32] broadcasts to [32, 32]
# advice: Give both the same shape before bias_of_a_column.py:20: call squeeze(-1) on the [32, 1]
# lines: broadcast=20 compared=31
import torch
from torch import nn


class Factors(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Embedding(20, 4), nn.Embedding(20, 4)
        self.bias = nn.Embedding(20, 1)

    def forward(self, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """Add a bias to a product."""
        product = (self.left(one) * self.right(other)).sum(-1)
        bias = self.bias(one)

        return bias + product  # -
        return bias.squeeze(-1) + product  # +


torch.manual_seed(0)
model = Factors()
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
one, other, score = torch.randint(20, (32,)), torch.randint(20, (32,)), torch.randn(32)
history = []
for _ in range(8):
    prediction = model(one, other)
    loss = (prediction - score).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
