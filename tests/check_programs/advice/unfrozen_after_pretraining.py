# expect: GI361
# why: they were frozen when tuning was made, and unfrozen_after_pretraining.py:41 unfreezes them later.
# advice: Or pass all parameters at unfrozen_after_pretraining.py:36: those without a gradient are left alone.
# lines: optimizer=36 unfrozen=41 backward=45
import torch
from torch import nn

torch.manual_seed(0)


class Network(nn.Module):
    """An encoder that was trained before, and what reads it."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder, self.head = encoder, nn.Linear(8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return one value for each example."""
        return self.head(torch.tanh(self.encoder(x))).squeeze(1)


def pretrained() -> nn.Module:
    encoder, decoder = nn.Linear(4, 8), nn.Linear(8, 4)
    optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1)
    for _ in range(3):
        x = torch.randn(16, 4)
        optimizer.zero_grad()
        (decoder(encoder(x)) - x).square().mean().backward()
        optimizer.step()
    return encoder


network = Network(pretrained())
network.encoder.requires_grad_(False)
tuning = torch.optim.SGD([one for one in network.parameters() if one.requires_grad], lr=0.1)  # -
tuning = torch.optim.SGD(network.parameters(), lr=0.1)  # +
x, history = torch.randn(64, 4), []
for step in range(12):
    if step == 2:
        network.encoder.requires_grad_(True)

    loss = (network(x) - x[:, 0] * x[:, 1]).square().mean()
    tuning.zero_grad()
    loss.backward()
    tuning.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
