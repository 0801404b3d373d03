"""Schedules of epochs and of batches, cycles that are meant, and numbers that a plateau is looked for in."""

import torch
from torch import nn
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
EPOCHS, PERIOD = 6, 5
x = torch.randn(60, 4)
y = (x.sum(1) > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=10, shuffle=True)


def of(kind, **options):
    """Make a model, an optimizer and a scheduler."""
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return model, optimizer, kind(optimizer, **options)


def train(model, optimizer, after_batch=lambda: None, after_epoch=lambda _loss, _accuracy: None, epochs=EPOCHS):
    """Train for some epochs."""
    for _ in range(epochs):
        for a, b in loader:
            loss = nn.functional.cross_entropy(model(a), b)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            after_batch()
        with torch.no_grad():
            scores = model(x)
        after_epoch(nn.functional.cross_entropy(scores, y).item(), (scores.argmax(1) == y).float().mean().item())


model, optimizer, scheduler = of(lr_scheduler.CosineAnnealingLR, T_max=PERIOD)
train(model, optimizer, scheduler.step)  # a cycle of batches
model, optimizer, scheduler = of(lr_scheduler.OneCycleLR, max_lr=0.1, total_steps=EPOCHS * len(loader))
train(model, optimizer, scheduler.step)
model, optimizer, plateau = of(lr_scheduler.ReduceLROnPlateau, mode="min", patience=1)
train(model, optimizer, after_epoch=lambda loss, _: plateau.step(loss))
model, optimizer, plateau = of(lr_scheduler.ReduceLROnPlateau, mode="max", patience=1)
train(model, optimizer, after_epoch=lambda _, accuracy: plateau.step(accuracy))
model, optimizer, plateau = of(lr_scheduler.ReduceLROnPlateau, mode="max", patience=1)
train(model, optimizer, after_epoch=lambda loss, _: plateau.step(-loss))
model, optimizer, plateau = of(lr_scheduler.ReduceLROnPlateau, mode="min", patience=1)
train(model, optimizer, after_epoch=lambda _, accuracy: plateau.step(1 - accuracy))
growing = iter(range(1, 99))  # a validation loss, as a model overfits
model, optimizer, plateau = of(lr_scheduler.ReduceLROnPlateau, mode="min", patience=1)
train(model, optimizer, after_epoch=lambda loss, _: plateau.step(loss * next(growing)))
model, optimizer, scheduler = of(lr_scheduler.CosineAnnealingLR, T_max=2 * len(loader))
for _ in range(2):
    for a, b in loader:  # three steps with each batch, and one of the scheduler
        for _ in range(3):
            loss = nn.functional.cross_entropy(model(a), b)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()
