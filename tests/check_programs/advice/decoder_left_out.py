# expect: GI361
# why: optimizer was made without the parameters of this Sequential decoder.
# advice: Pass them as well at decoder_left_out.py:22
# lines: optimizer=22 backward=29
import torch
from torch import nn


class Autoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(8, 4), nn.ReLU())
        self.decoder = nn.Sequential(nn.Linear(4, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Reconstruct."""
        return self.decoder(self.encoder(x))


torch.manual_seed(0)
model = Autoencoder()
optimizer = torch.optim.Adam(model.encoder.parameters(), lr=0.01)  # -
optimizer = torch.optim.Adam([*model.encoder.parameters(), *model.decoder.parameters()], lr=0.01)  # +
x = torch.randn(16, 8)
history = []
for _ in range(6):
    loss = (model(x) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
