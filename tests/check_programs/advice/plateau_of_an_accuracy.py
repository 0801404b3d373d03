# expect: GI392
# why: accuracy rose from
# advice: Make ReduceLROnPlateau at plateau_of_an_accuracy.py:13 with mode='max'.
# lines: scheduler=13 told=27
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x.sum(1) > 0).long()
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=2)  # -
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", factor=0.5, patience=2)  # +
history = []
for _ in range(10):
    for part in torch.randperm(256).split(64):
        loss = nn.functional.cross_entropy(model(x[part]), y[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        scores = model(x)
        history.append(nn.functional.cross_entropy(scores, y).item())
        accuracy = (scores.argmax(1) == y).float().mean().item()

    scheduler.step(accuracy)
print("loss", history[0], history[-1])
