# expect: GI001
# advice: A loss is made once and then called: write MSELoss()(output, target).
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
x = torch.randn(32, 4)
y = x.sum(1, keepdim=True)
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = nn.MSELoss(net(x), y)  # -
    loss = nn.MSELoss()(net(x), y)  # +
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
