"""Autocast, a GradScaler whose first scale overflows on purpose, and averaged weights."""

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 1))
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
optimizer = torch.optim.AdamW(model.parameters())
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**20)
for _ in range(3):
    with torch.autocast("cpu", dtype=torch.float16):
        loss = (model(torch.randn(6, 4)) * 30).pow(2).mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    average.update_parameters(model)
    print(loss.item().hex(), scaler.get_scale())
