# expect: GI301
# advice: Which of the 3 calls of detach()
# advice: into which codebook goes
# never: Remove detach()
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
encoder, decoder = nn.Linear(4, 6), nn.Linear(6, 4)
codebook = nn.Parameter(torch.randn(8, 6))
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters(), codebook], lr=0.01)
x = torch.randn(32, 4)
losses = []
for _ in range(20):
    z = encoder(x)
    q = codebook[torch.cdist(z, codebook).argmin(1)]
    vq = F.mse_loss(q.detach(), z.detach()) + 0.25 * F.mse_loss(z, q.detach())  # -
    vq = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())  # +
    z_q = z + (q - z).detach()
    loss = F.mse_loss(decoder(z_q), x) + vq
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
