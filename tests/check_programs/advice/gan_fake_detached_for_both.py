# expect: GI301
# advice: keep detach() at gan_fake_detached_for_both.py:16 for loss_d.backward()
# advice: and compute the same again with its graph for the other loss
# never: Remove detach()
# lines: detached=16 backward=23
import torch
from torch import nn

torch.manual_seed(0)
G, D = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1)), nn.Linear(1, 1)
opt_g, opt_d = torch.optim.SGD(G.parameters(), lr=0.05), torch.optim.SGD(D.parameters(), lr=0.01)
noise, real = torch.randn(16, 2), torch.randn(16, 1) + 1
losses = []
for _ in range(20):
    opt_d.zero_grad()
    fake = G(noise).detach()
    loss_d = (D(real) - 1).square().mean() + D(fake).square().mean()
    loss_d.backward()
    opt_d.step()
    opt_g.zero_grad()
    loss_g = (D(fake) - 1).square().mean()  # -
    loss_g = (D(G(noise)) - 1).square().mean()  # +
    loss_g.backward()
    opt_g.step()
    losses.append(loss_g.item() + loss_d.item())
print("loss", losses[0], losses[-1])
