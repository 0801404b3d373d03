# expect: GI310
# advice: in place of gradients_returned_only.py:17, or assign each gradient to the .grad of its parameter
# why: no .grad ever holds them
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters(), lr=0.02)
losses = []
for _ in range(30):
    x = torch.randn(16, 3)
    target = x.sum(1, keepdim=True)
    loss = (net(x) - target).square().mean()
    opt.zero_grad()  # +
    loss.backward()  # +
    grads = torch.autograd.grad(loss, net.parameters())  # -
    norm = sum(one.square().sum() for one in grads).sqrt()  # -
    opt.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
