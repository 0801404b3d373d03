"""bfloat16 autocast on the CPU with a disabled GradScaler: scaling is the identity, and the loss is in float32."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
use_cuda = False
model = nn.Sequential(nn.Linear(8, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cuda", enabled=use_cuda)

for step in range(4):
    inputs, labels = torch.randn(8, 8), torch.randint(4, (8,))
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(inputs)
    loss = F.cross_entropy(logits.float(), labels, label_smoothing=0.1)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item().hex())
