# expect: GI368
# why: The first 6 steps of optimizer had the learning rate 0 and changed nothing.
# advice: Begin the schedule above 0, as by (epoch + 1) / warmup, or count batches and call warm_up_at_0.py:23 for each.
# lines: scheduler=23 step=22
import torch
from torch import nn

torch.manual_seed(0)
model, warmup = nn.Linear(4, 1), 3
x = torch.randn(72, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: min(1.0, epoch / warmup))  # -
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: min(1.0, (epoch + 1) / warmup))  # +

history = []
for _ in range(5):
    for part in x.split(12):
        loss = (model(part) - part.sum(1, keepdim=True)).square().mean()
        history.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
print("loss", history[0], history[-1])
