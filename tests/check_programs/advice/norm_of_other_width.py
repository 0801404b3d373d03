# expect: GI001
# advice: Make the batch norm with num_features=16, as many as its input has channels.
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(
    nn.Linear(4, 16),
    nn.BatchNorm1d(32),  # -
    nn.BatchNorm1d(num_features=16),  # +
    nn.Tanh(),
    nn.Linear(16, 1),
)
x = torch.randn(32, 4)
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
