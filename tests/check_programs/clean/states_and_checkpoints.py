"""State dicts that are copied, saved, read again, and loaded where they came from."""

import copy
import io
from typing import Any

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
start, kept, files = copy.deepcopy(model.state_dict()), [], []
best: dict[str, Any] = {"loss": float("inf")}
for epoch in range(8):
    x = torch.randn(32, 4)
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    checkpoint = {"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    file = io.BytesIO()
    torch.save(checkpoint, file)
    files.append(file.getvalue())
    kept.append({name: value.clone() for name, value in model.state_dict().items()})
    if loss.item() < best["loss"]:
        best = {"loss": loss.item(), "model": copy.deepcopy(model.state_dict())}
    if epoch % 2:
        checkpoint = {"epoch": epoch, "model": model.state_dict()}
        torch.save(checkpoint, io.BytesIO())
    print(loss.item().hex())
checkpoint = torch.load(io.BytesIO(files[2]))
model.load_state_dict(checkpoint["model"])
model.load_state_dict(model.state_dict())
model.load_state_dict(best["model"])
model.load_state_dict(kept[1])
model.load_state_dict(start)
