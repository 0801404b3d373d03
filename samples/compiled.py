"""torch.compile turns the whole model into one node, with the operators of its own backward behind it.

Try: gradinspect trace samples/compiled.py
and the graph that it would have without: gradinspect trace samples/compiled.py --eager
"""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1))
compiled_model = torch.compile(model, backend="aot_eager")

loss = compiled_model(torch.randn(8, 16)).square().mean()
loss.backward()

print(f"loss {loss.item():.4f}")
