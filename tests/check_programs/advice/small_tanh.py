# expect: GI605
# advice: Use nn.init.xavier_normal_(weight, gain=5 / 3) at small_tanh.py:15, or put a BatchNorm before each tanh.
import torch
from torch import nn, optim


def prepare(module):
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, std=0.02)  # -
        nn.init.xavier_normal_(module.weight, gain=5 / 3)  # +
        nn.init.zeros_(module.bias)


def block(before, after):
    return nn.Sequential(nn.Linear(before, after), nn.Tanh())


torch.manual_seed(1)
blocks = [block(20, 32)] + [block(32, 32) for _ in range(5)]
net = nn.Sequential(*blocks, nn.Linear(32, 1))
net.apply(prepare)
x = torch.randn(200, 20)
y = torch.sin(x[:, :1]) + x[:, 1:2]
opt = optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
losses = []
for _ in range(60):
    loss = nn.functional.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
