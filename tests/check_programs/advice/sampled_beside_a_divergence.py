# expect: GI308
# why: torch.normal() at sampled_beside_a_divergence.py:24 draws without a gradient
# advice: At sampled_beside_a_divergence.py:24, use torch.distributions.Normal(mean, deviation).rsample() in place of
# lines: sampled=24 used=26 backward=40
import torch
from torch import nn

torch.manual_seed(0)


class Autoencoder(nn.Module):
    """Encodes a distribution, and decodes what is drawn from it."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Linear(8, 8)
        self.decoder = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 8))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the decoded sample, and what it was drawn from."""
        mean, logarithm = self.encoder(x).chunk(2, dim=1)
        deviation = (logarithm / 2 - 1).exp()

        drawn = torch.normal(mean, deviation)  # -
        drawn = torch.distributions.Normal(mean, deviation).rsample()  # +
        return self.decoder(drawn.view(-1, 4)), mean, logarithm


model = Autoencoder()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
x = torch.randn(64, 8)
history = []
for _ in range(12):
    result, mean, logarithm = model(x)
    error = (result - x).square().sum(1).mean()
    divergence = 0.5 * (mean.square() + logarithm.exp() - logarithm - 1).sum(1).mean()
    loss = error + 0.1 * divergence

    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
