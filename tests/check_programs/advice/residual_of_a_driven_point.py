# expect: GI402
# why: because create_graph=True is missing
# advice: Pass create_graph=True at residual_of_a_driven_point.py:14.
# lines: gradient=14 backward=21
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
history = []
for _ in range(30):
    t = torch.linspace(0, 1, 32).unsqueeze(1).requires_grad_()
    (speed,) = torch.autograd.grad(net(t).sum(), t, retain_graph=True)  # -
    (speed,) = torch.autograd.grad(net(t).sum(), t, create_graph=True)  # +
    residual = (speed - torch.exp(-t)).square().mean()
    start = (net(torch.zeros(1, 1)) - 1).square().mean()
    loss = residual + start
    history.append(residual.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", history[0], history[-1])
