# expect: GI382
# why: which does not step.
# advice: Make the scheduler again after scheduler_of_a_replaced_optimizer.py:13, with the new optimizer
# lines: optimizer=10 replaced=13 scheduler=24
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(6, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)

optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)  # +
x = torch.randn(64, 6)
y = x.sum(1, keepdim=True)
history = []
for _ in range(6):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
    scheduler.step()
print("loss", history[0], history[-1])
