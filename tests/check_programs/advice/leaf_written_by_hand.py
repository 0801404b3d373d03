"""Gradient descent by hand, without no_grad."""

import torch

torch.manual_seed(0)
x = torch.randn(16, 3)
y = x.sum(1, keepdim=True)
weight = torch.zeros(3, 1, requires_grad=True)
losses = []
for _ in range(20):
    loss = (x @ weight - y).square().mean()
    loss.backward()
    weight -= 0.1 * weight.grad  # -
    with torch.no_grad():  # +
        weight -= 0.1 * weight.grad  # +
    weight.grad = None
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
# expect: GI001
# lines: failed=13
# why: weight is float32 [3, 1], a leaf that requires grad
# advice: into 'with torch.no_grad():'
