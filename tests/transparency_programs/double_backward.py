import fingerprint
import torch
from torch import nn

torch.manual_seed(21)
critic = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
optimizer = torch.optim.RMSprop(critic.parameters(), lr=1e-3)
for step in range(4):
    real, fake = torch.randn(8, 4), torch.randn(8, 4)
    mix = (real * 0.3 + fake * 0.7).requires_grad_()
    (slopes,) = torch.autograd.grad(critic(mix).sum(), mix, create_graph=True)
    penalty = (slopes.norm(dim=1) - 1).square().mean()
    loss = critic(fake).mean() - critic(real).mean() + 10 * penalty
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.9f}", mix.grad is None)
x = torch.randn(3, requires_grad=True)
first = torch.autograd.grad((x**4).sum(), x, create_graph=True)[0]
second = torch.autograd.grad(first.sum(), x, create_graph=True)[0]
second.sum().backward()
fingerprint.show(critic, x)
