# expect: GI335
# why: divergence_beside_a_mean.py:16 is a mean over the 48 elements of each example, and
# advice: at divergence_beside_a_mean.py:16, reduction='sum' divided by how many rows there are
# advice: Or divide such a divergence by 48 at divergence_beside_a_mean.py:19.
# lines: sum=17 mean=16 added=19
import torch
from torch import nn

torch.manual_seed(0)
encoder, decoder, history = nn.Linear(48, 8), nn.Linear(4, 48), []
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=0.02)
x = torch.rand(64, 3) @ torch.rand(3, 48) / 3
for _ in range(400):
    mean, log_var = encoder(x).chunk(2, 1)
    z = mean + torch.randn_like(mean) * (log_var / 2).exp()
    error = nn.functional.mse_loss(decoder(z), x)
    kl = -0.5 * torch.sum(1 + log_var - mean**2 - log_var.exp()) / len(x)
    optimizer.zero_grad()
    loss = error + kl  # -
    loss = error + kl / 48  # +
    loss.backward()
    optimizer.step()
    history.append(error.item())
print("loss", history[0], history[-1])
