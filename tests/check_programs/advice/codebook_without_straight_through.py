# expect: GI309
# why: So what made z learns only from the term that compares the two
# advice: Give the layers z + (q - z).detach() instead of q
# lines: chosen=20 used=22 compared=25 backward=28
import torch
from torch import nn
from torch.nn.functional import mse_loss, one_hot

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
decoder = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8))
codebook = nn.Parameter(torch.randn(12, 4))
parameters = [*encoder.parameters(), *decoder.parameters(), codebook]
optimizer = torch.optim.Adam(parameters, lr=0.01)
x = torch.randn(64, 2) @ torch.randn(2, 8)
losses = []
for _ in range(40):
    z = encoder(x)
    distances = z.square().sum(1, keepdim=True) - 2 * z @ codebook.T + codebook.square().sum(1)
    nearest = distances.argmin(1)
    q = one_hot(nearest, 12).float() @ codebook
    y = decoder(q)  # -
    y = decoder(z + (q - z).detach())  # +
    loss = mse_loss(y, x)
    commitment = mse_loss(z, q.detach())
    loss = loss + mse_loss(q, z.detach()) + 0.25 * commitment
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
