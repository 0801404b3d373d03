# expect: GI102
# advice: Compute scores_kept_over_step.py:15 and what scores_kept_over_step.py:17 makes of that again
# lines: saved=15 written=20 backward=24
import torch
from torch import nn

torch.manual_seed(0)
G, D = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1)), nn.Sequential(nn.Linear(1, 4), nn.Tanh())
last = nn.Linear(4, 1)
opt_g, opt_d = torch.optim.SGD(G.parameters(), lr=0.05), torch.optim.SGD([*D.parameters(), *last.parameters()], lr=0.01)
noise, real = torch.randn(16, 2), torch.randn(16, 1) + 1
losses = []
for _ in range(20):
    fake = G(noise)
    scores = last(D(fake))
    loss_d = (last(D(real)) - 1).square().mean() + scores.square().mean()
    loss_g = (scores - 1).square().mean()
    opt_d.zero_grad()
    loss_d.backward(retain_graph=True)
    opt_d.step()
    opt_g.zero_grad()
    scores = last(D(fake))  # +
    loss_g = (scores - 1).square().mean()  # +
    loss_g.backward()
    opt_g.step()
    losses.append(loss_g.item() + loss_d.item())
print("loss", losses[0], losses[-1])
