# expect: GI102
# advice: Compute gan_stepped_between.py:16 and what gan_stepped_between.py:22 makes of that again after opt_d.step()
# advice: at gan_stepped_between.py:20. Or call opt_d.step() after loss_g.backward() at gan_stepped_between.py:24, if
# advice: the gradients of both should update these weights.
# lines: backward=24 saved=16 written=20
import torch
from torch import nn

torch.manual_seed(0)
G, D = nn.Linear(2, 1), nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
opt_g, opt_d = torch.optim.SGD(G.parameters(), lr=0.02), torch.optim.SGD(D.parameters(), lr=0.005)
noise, real = torch.randn(16, 2), torch.randn(16, 1) + 1
losses = []
for _ in range(20):
    fake = G(noise)
    score = D(fake)
    loss_d = (D(real) - 1).square().mean() + score.square().mean()
    opt_d.zero_grad()
    loss_d.backward(retain_graph=True)
    opt_d.step()
    score = D(fake)  # +
    loss_g = (score - 1).square().mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    losses.append(loss_g.item())
print("loss", losses[0], losses[-1])
