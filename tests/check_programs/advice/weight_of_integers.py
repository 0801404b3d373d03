# expect: GI001
# why: Only Tensors of floating point and complex dtype can require gradients
# advice: Make it of floating point: 1.0 instead of 1, or dtype=torch.float32.
# lines: failed=10
"""A line that is fitted by hand, from whole numbers."""

import torch

torch.manual_seed(0)
slope = torch.tensor([1, 2, 3], requires_grad=True)  # -
slope = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)  # +
x = torch.randn(64, 3)
y = x @ torch.tensor([3.0, -1.0, 0.5])
optimizer = torch.optim.SGD([slope], lr=0.1)
history = []
for _ in range(10):
    loss = (x @ slope - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
