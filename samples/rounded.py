"""A quantised layer: round() passes on zeros, so what is below it learns nothing, without any error.

Try: gradinspect grads samples/rounded.py
"""

import torch
from torch import nn

torch.manual_seed(0)
encoder, decoder = nn.Linear(8, 4), nn.Linear(4, 8)
x = torch.randn(32, 8)

code = (encoder(x) * 8).round() / 8
loss = (decoder(code) - x).square().mean()
loss.backward()
print(f"loss {loss.item():.4f}")
