# expect: GI001
# advice: Leave out last_epoch, or load the optimizer's state before the scheduler is made.
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
x = torch.randn(32, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 100, last_epoch=5)  # -
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 100)  # +
history = []
for _ in range(20):
    loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
