# expect: GI393
# why: was made for 24 steps (steps_per_epoch=len(loader))
# advice: Move cycle_of_batches_for_epochs.py:24 into the loop over the batches
# lines: scheduler=14 stepped=24
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(96, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters())
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.02, epochs=4, steps_per_epoch=len(loader))
history = []
for _ in range(4):
    for inputs, wanted in loader:
        loss = nn.functional.mse_loss(model(inputs), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()  # +
        history.append(loss.item())
    scheduler.step()  # -
print("loss", history[0], history[-1])
