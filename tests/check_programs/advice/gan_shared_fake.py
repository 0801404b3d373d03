# expect: GI401
# advice: If loss_d at gan_shared_fake.py:19 is not meant to train what gan_shared_fake.py:15 reads, compute loss_d
# advice: from fake.detach(). Otherwise compute gan_shared_fake.py:15 again before gan_shared_fake.py:21, or both
# advice: losses before a single backward() on their sum.
# lines: backward=23 freed=19 new=21 old=15
import torch
from torch import nn

torch.manual_seed(0)
G, D = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1)), nn.Linear(1, 1)
opt_g, opt_d = torch.optim.SGD(G.parameters(), lr=0.05), torch.optim.SGD(D.parameters(), lr=0.01)
noise, real = torch.randn(16, 2), torch.randn(16, 1) + 1
losses = []
for _ in range(20):
    fake = G(noise)
    loss_d = (D(real) - 1).square().mean() + D(fake).square().mean()  # -
    loss_d = (D(real) - 1).square().mean() + D(fake.detach()).square().mean()  # +
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()
    loss_g = (D(fake) - 1).square().mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    losses.append(loss_g.item() + loss_d.item())
print("loss", losses[0], losses[-1])
