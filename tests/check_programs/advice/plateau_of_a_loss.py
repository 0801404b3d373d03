# expect: GI392
# why: ReduceLROnPlateau has mode='max'
# advice: Make ReduceLROnPlateau at plateau_of_a_loss.py:12 with mode='min'.
# lines: scheduler=12 told=23
import torch
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

torch.manual_seed(0)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
scheduler = ReduceLROnPlateau(optimizer, mode="max", patience=3)  # -
scheduler = ReduceLROnPlateau(optimizer, mode="min", patience=3)  # +
x = torch.randn(64, 8)
y = x.sum(1, keepdim=True)
metrics: dict[str, list[float]] = {"val_loss": []}
for _ in range(12):
    loss = nn.functional.mse_loss(model(x[:48]), y[:48])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    metrics["val_loss"].append(nn.functional.mse_loss(model(x[48:]), y[48:]).item())
    scheduler.step(metrics["val_loss"][-1])
print("loss", metrics["val_loss"][0], metrics["val_loss"][-1])
