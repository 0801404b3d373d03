# expect: GI301
# advice: Keep detach() there
# advice: (q - z.detach()).square().mean()
# never: Remove detach()
import torch
from torch import nn

torch.manual_seed(0)
encoder, decoder = nn.Linear(4, 6), nn.Linear(6, 4)
codebook = nn.Embedding(8, 6)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters(), *codebook.parameters()], lr=0.01)
x = torch.randn(32, 4)
losses = []
for _ in range(20):
    z = encoder(x)
    index = torch.cdist(z, codebook.weight).argmin(1)
    q = codebook(index)
    z_q = z + (q - z).detach()
    commit = (z - q.detach()).square().mean()
    loss = (decoder(z_q) - x).square().mean() + 0.25 * commit  # -
    loss = (decoder(z_q) - x).square().mean() + 0.25 * commit + (q - z.detach()).square().mean()  # +
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
