# expect: GI381
# why: from its largest value to 0 within 4 steps, and after 24 steps it is 0 still
# advice: move schedule_of_epochs_for_batches.py:25 out of the loop over the batches
import torch
from torch import nn

torch.manual_seed(0)
epochs = 4
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: max(0.0, 1 - epoch / epochs))
x = torch.randn(96, 4)
y = x.sum(1, keepdim=True)
history = []


def epoch_of_training() -> None:
    """Train on each batch once."""
    for part in torch.arange(96).split(16):
        loss = (model(x[part]) - y[part]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
        scheduler.step()  # -


for _ in range(epochs):
    epoch_of_training()
    scheduler.step()  # +
print("loss", history[0], history[-1])
