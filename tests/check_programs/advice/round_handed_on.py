# expect: GI601
# lines: zeroed=23
# advice: At round_handed_on.py:23, use a straight-through estimator
import torch
from torch import nn


def forward_with(fn, x):
    return fn(x)


class Autoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.Linear(6, 4), nn.Linear(4, 6)

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        """Reconstruct from a code of eight levels."""
        x = forward_with(torch.sigmoid, forward_with(self.encoder, given)) * 7

        code = x + (x.round() - x).detach()  # +

        code = forward_with(torch.round, x)  # -
        return forward_with(self.decoder, code / 7)


torch.manual_seed(0)
model = Autoencoder()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x, history = torch.randn(16, 6), []
for _ in range(8):
    loss = nn.functional.mse_loss(model(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
