"""Gradients are unscaled by hand, a scaler has the scale 1, and schedules run per batch and per epoch."""

# options: --steps 20

import torch
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(16, 3), torch.randn(16, 1)


def loss_of(model):
    return (model(x) - y).square().mean()


model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=128.0)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=4)
for _ in range(4):
    optimizer.zero_grad()
    scaler.scale(loss_of(model)).backward()
    for p in model.parameters():
        p.grad /= 128.0
    optimizer.step()
    schedule.step()

other = nn.Linear(3, 1)
adam = torch.optim.Adam(other.parameters(), lr=0.01)
one = torch.amp.GradScaler("cpu", init_scale=1.0)
epochs = torch.optim.lr_scheduler.StepLR(adam, step_size=1, gamma=0.1)
for _ in range(2):
    for _ in range(2):
        adam.zero_grad()
        one.scale(loss_of(other)).backward()
        adam.step()
    epochs.step()

last = nn.Linear(3, 1)
sgd = torch.optim.SGD(last.parameters(), lr=0.1)
both = torch.amp.GradScaler("cpu", init_scale=64.0)
cosine = torch.optim.lr_scheduler.CosineAnnealingLR(sgd, T_max=3)
for _ in range(3):
    sgd.zero_grad()
    both.scale(loss_of(last)).backward()
    both.unscale_(sgd)
    nn.utils.clip_grad_norm_(last.parameters(), 1.0)
    both.step(sgd)
    both.update()
    cosine.step()
