# expect: GI001
# advice: The channels come last in the input: at channels_last_images.py:13, pass it as permute(0, 3, 1, 2).
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(256, 1))
images = torch.rand(16, 10, 10, 3)
y = images.mean((1, 2, 3)).unsqueeze(1) * 4
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
history = []
for _ in range(30):
    loss = (net(images) - y).square().mean()  # -
    loss = (net(images.permute(0, 3, 1, 2)) - y).square().mean()  # +
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
