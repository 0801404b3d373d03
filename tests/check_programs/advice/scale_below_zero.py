# expect: GI001
# advice: Make the scale positive, as softplus() or exp() does.
import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(0)
net = nn.Linear(4, 2)
x, y = torch.randn(32, 4), torch.randn(32)
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
history = []
for _ in range(30):
    mean, scale = net(x).unbind(1)
    scale = nn.functional.softplus(scale)  # +
    loss = -Normal(mean, scale).log_prob(y).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
