# expect: GI393
# why: MultiStepLR was made with milestones=[5, 8], which fits the 10 passes of the loop at
# advice: Move milestones_of_epochs.py:23 out of the loop over the batches, so that it is called once per epoch.
# lines: scheduler=11 stepped=23
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [5, 8])
x = torch.randn(96, 4)
y = x.sum(1, keepdim=True)
history = []

for _ in range(10):
    for part in torch.arange(96).split(8):
        loss = (model(x[part]) - y[part]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
        scheduler.step()  # -
    scheduler.step()  # +
print("loss", history[0], history[-1])
