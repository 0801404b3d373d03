# expect: GI381
# why: has brought the learning rate of optimizer to a ten-thousandth of its largest value after 12 steps
# advice: move schedule_of_batches.py:19 out of the loop over the batches
# lines: scheduler=19
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
schedule, history = torch.optim.lr_scheduler.MultiStepLR(optimizer, [3, 6, 9, 12], 0.1), []
x = torch.randn(64, 4)
for _ in range(4):
    for rows in x.split(8):
        loss = (model(rows) - rows.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()  # -
        history.append(loss.item())
    schedule.step()  # +
print("loss", history[0], history[-1])
