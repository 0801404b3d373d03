# expect: GI001
# advice: The input has become smaller than the kernel: give it larger images, padding, or fewer pooling layers
# advice: before.
import torch
from torch import nn

torch.manual_seed(0)
layers = [nn.Conv2d(1, 4, 5), nn.MaxPool2d(2), nn.Conv2d(4, 4, 5), nn.MaxPool2d(2)]  # -
layers = [nn.Conv2d(1, 4, 5), nn.Conv2d(4, 4, 5)]  # +
net = nn.Sequential(*layers, nn.Tanh(), nn.Conv2d(4, 1, 5))
x = torch.rand(8, 1, 16, 16)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
history = []
for _ in range(30):
    loss = (net(x).mean((1, 2, 3)) - 3 * x.mean((1, 2, 3))).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
