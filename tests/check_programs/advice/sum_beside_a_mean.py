# expect: GI332
# why: The loss adds what sum_beside_a_mean.py:17 sums over all 32 rows of the batch to what
# advice: Reduce both alike: at sum_beside_a_mean.py:17, take the mean, or divide by how many rows it has.
# lines: sum=17 mean=16 added=19
import torch
from torch import nn

torch.manual_seed(0)
encoder, decoder, history = nn.Linear(12, 8), nn.Linear(4, 12), []
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=0.02)
x = torch.randn(32, 3) @ torch.randn(3, 12)
for _ in range(8):
    mean, log_var = encoder(x).chunk(2, 1)
    z = mean + torch.randn(32, 4) * (log_var / 2).exp()
    out = decoder(z)
    error = nn.functional.mse_loss(out, x)
    kl = -0.5 * torch.sum(1 + log_var - mean**2 - log_var.exp())  # -
    kl = -0.5 * torch.sum(1 + log_var - mean**2 - log_var.exp()) / len(x)  # +
    loss = error + kl
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
