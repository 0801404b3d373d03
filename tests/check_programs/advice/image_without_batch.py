# expect: GI001
# advice: The input lacks dimensions: add one for each of batch and channels that is missing, as unsqueeze(0) does.
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Conv2d(1, 1, 3, padding=1)
image = torch.rand(8, 8)
batch = image  # -
batch = image.unsqueeze(0).unsqueeze(0)  # +
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = (net(batch) - batch.flip(-1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
