# expect: GI368
# why: the scheduler that steps at schedule_by_whole_division.py:19 has kept it there
# advice: return a factor above 0: e / 30, not e // 30.
# lines: optimizer=10 scheduler=19 step=18
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: (epoch + 1) // 30)  # -
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: (epoch + 1) / 30)  # +
x, history = torch.randn(16, 8), []
for _ in range(15):
    loss = (model(x) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
