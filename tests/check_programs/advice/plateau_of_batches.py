# expect: GI393
# why: Its patience of 4 is one for epochs
# advice: Move plateau_of_batches.py:24 out of the loop over the batches, and give it the loss of the whole epoch.
# lines: scheduler=13 stepped=24
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(96, 4)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=12, shuffle=True)
history = []
for _ in range(4):
    total = 0.0
    for a, b in loader:
        loss = (model(a) - b).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        scheduler.step(loss.item())  # -
    scheduler.step(total / len(loader))  # +
    history.append(total)
print("loss", history[0], history[-1])
