# expect: GI393
# why: CosineAnnealingLR was made with T_max=epochs, which is what a loop counts to
# advice: Move cosine_of_epochs_for_batches.py:23 out of the loop over the batches
# lines: scheduler=12 stepped=23
import torch
from torch import nn

torch.manual_seed(0)
epochs = 4
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
x = torch.randn(96, 4)
y = x.sum(1, keepdim=True)
history = []
for _ in range(1, epochs + 1):
    for part in torch.arange(96).split(16):
        loss = (model(x[part]) - y[part]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
        scheduler.step()  # -
    scheduler.step()  # +
print("loss", history[0], history[-1])
