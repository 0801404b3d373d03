# expect: GI001
# advice: Make the layer with in_channels=1, or give its input 3 channels.
import torch
from torch import nn

torch.manual_seed(0)
first = nn.Conv2d(3, 4, 3)  # -
first = nn.Conv2d(in_channels=1, out_channels=4, kernel_size=3)  # +
net = nn.Sequential(first, nn.Tanh(), nn.Flatten(), nn.Linear(144, 1))
x = torch.rand(16, 1, 8, 8)
y = x.mean((1, 2, 3)).unsqueeze(1) * 4
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
history = []
for _ in range(30):
    loss = (net(x) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
