# expect: GI361
# why: opt_g was made of the parameters that another optimizer holds already
# advice: Make opt_g at gan_optimizer_of_the_other.py:12 of the parameters of the Sequential.
# lines: optimizer=12 backward=24
import torch
from torch import nn

torch.manual_seed(0)
G = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
D = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
opt_d = torch.optim.Adam(D.parameters(), lr=0.001)
opt_g = torch.optim.Adam(D.parameters(), lr=0.02)  # -
opt_g = torch.optim.Adam(G.parameters(), lr=0.02)  # +
history = []
for _ in range(8):
    fake = G(torch.ones(16, 4))
    loss_d = D(fake.detach()).mean() - D(torch.randn(16, 2) + 3).mean()
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()
    loss_g = -D(fake).mean()
    history.append(loss_g.item())
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
print("loss", history[0], history[-1])
