# expect: GI308
# why: sample() at sampled_beside_its_prior.py:33 draws without a gradient
# advice: Use rsample() in place of sample() at sampled_beside_its_prior.py:33.
# lines: sampled=33 used=21 backward=42
import torch
from torch import nn
from torch.distributions import Normal, kl_divergence

torch.manual_seed(0)


class Decoder(nn.Module):
    """Returns a distribution of what was encoded."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 16), nn.SiLU(), nn.Linear(16, 10))

    def forward(self, z: torch.Tensor) -> Normal:
        """Decode."""
        return Normal(self.net(z), 0.5)


encoder = nn.Sequential(nn.Linear(10, 16), nn.SiLU(), nn.Linear(16, 6))
decoder = Decoder()
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=0.01)
x = torch.randn(64, 3) @ torch.randn(3, 10)
history = []
for _ in range(40):
    mean, logarithm = encoder(x).chunk(2, dim=1)
    posterior = Normal(mean, (logarithm / 2 - 1).exp())

    z = posterior.sample()  # -
    z = posterior.rsample()  # +
    prior = Normal(torch.zeros_like(z), torch.ones_like(z))
    reconstruction = decoder(z)
    likelihood = reconstruction.log_prob(x).sum(1).mean()
    divergence = kl_divergence(posterior, prior).sum(1).mean()
    loss = 0.1 * divergence - likelihood

    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
