# expect: GI301
# advice: z + (hard - z).detach(), whose first z keeps its graph
import torch
from torch import nn

torch.manual_seed(0)
encoder, decoder = nn.Linear(4, 6), nn.Linear(6, 4)
scale = nn.Parameter(torch.ones(6))  # -
scale = torch.ones(6)  # +
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters(), scale], lr=0.01)  # -
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=0.01)  # +
x = torch.randn(32, 4)
losses = []
for _ in range(20):
    z = encoder(x)
    hard = torch.round(z * scale)
    q = z.detach() + (hard - z).detach()  # -
    q = z + (hard - z).detach()  # +
    loss = (decoder(q) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
