# expect: GI301
# advice: Which of the 2 calls of detach()
# never: Remove detach()
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
encoder, predictor = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8)), nn.Linear(8, 8)
optimizer = torch.optim.SGD([*encoder.parameters(), *predictor.parameters()], lr=0.1)


def D(p, z):
    return -F.cosine_similarity(p, z.detach(), dim=-1).mean()


x = torch.randn(32, 8)
losses = []
for _ in range(20):
    z1, z2 = encoder(x + 0.1 * torch.randn_like(x)), encoder(x + 0.1 * torch.randn_like(x))
    p1, p2 = predictor(z1.detach()), predictor(z2.detach())  # -
    p1, p2 = predictor(z1), predictor(z2)  # +
    loss = 0.5 * (D(p1, z2) + D(p2, z1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
