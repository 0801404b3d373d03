"""Mixed precision: autocast puts cast nodes between float32 parameters and bfloat16 arithmetic.

Try: gradinspect saved samples/autocast.py
"""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 10))
features = torch.randn(16, 32)
labels = torch.randint(10, (16,))

with torch.autocast("cpu", dtype=torch.bfloat16):
    logits = model(features)
    loss = F.cross_entropy(logits, labels)
loss.backward()

print("logits:", logits.dtype, "loss:", loss.dtype)
print("gradients:", model[0].weight.grad.dtype)
