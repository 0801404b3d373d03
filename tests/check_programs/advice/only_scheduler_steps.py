# expect: GI365
# why: The scheduler steps at only_scheduler_steps.py:19
# advice: before the scheduler's step() at only_scheduler_steps.py:19
# lines: optimizer=9 backward=17 scheduler=19
import torch
from torch import nn

model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=50)
x = torch.randn(16, 4)
history = []
for _ in range(10):
    optimizer.zero_grad()
    loss = (model(x) - x[:, :2]).square().mean()
    history.append(loss.item())
    loss.backward()
    optimizer.step()  # +
    schedule.step()
print("loss", history[0], history[-1])
