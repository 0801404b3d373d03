"""A plateau of epochs, one of batches with the patience for it, one of a single loop, and warm-ups from above zero."""

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR, ReduceLROnPlateau

torch.manual_seed(0)
x = torch.randn(48, 4)
y = x.sum(1, keepdim=True)
models = [nn.Linear(4, 1) for _ in range(4)]
optimizers = [torch.optim.SGD(model.parameters(), lr=0.05) for model in models]
epochs = ReduceLROnPlateau(optimizers[0], patience=2)
batches = ReduceLROnPlateau(optimizers[1], patience=300)
alone = ReduceLROnPlateau(optimizers[2], patience=5)
warm = LambdaLR(optimizers[3], lambda step: min(1.0, step / 8))  # stepped with each batch: one step at 0
for _ in range(4):
    total = 0.0
    for part in torch.arange(48).split(12):
        losses = [nn.functional.mse_loss(model(x[part]), y[part]) for model in (models[0], models[1], models[3])]
        for optimizer, loss in zip((optimizers[0], optimizers[1], optimizers[3]), losses, strict=True):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        loss = losses[1]
        batches.step(loss.item())
        warm.step()
        total += losses[0].item()
        print([loss.item().hex() for loss in losses])
    epochs.step(total)
for _ in range(12):
    loss = nn.functional.mse_loss(models[2](x), y)
    optimizers[2].zero_grad()
    loss.backward()
    optimizers[2].step()
    alone.step(loss.item())
