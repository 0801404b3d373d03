# expect: GI001
# advice: It waits for a number to stop falling: pass that number, as in step(loss.item()).
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
x = torch.randn(32, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
history = []
for _ in range(20):
    loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
    schedule.step()  # -
    schedule.step(loss.item())  # +
print("loss", history[0], history[-1])
