# expect: GI301
# advice: Remove .item() at mean_of_numbers.py:14, use torch functions only from there on, and total / len(outputs)
# advice: itself instead of torch.tensor() at mean_of_numbers.py:16.
# lines: detached=14 used=16
import torch
from torch import nn


def weighted(outputs, targets):
    """Weight large errors more."""
    total = 0.0
    for output, target in zip(outputs, targets, strict=True):
        error = (output - target).abs().sum()
        total += (3.0 * error if error > 1 else error**2).item()  # -
        total = total + (3.0 * error if error > 1 else error**2)  # +
    return torch.tensor(total / len(outputs), requires_grad=True)  # -
    return total / len(outputs)  # +


torch.manual_seed(0)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x, history = torch.randn(16, 3), []
y = x.sum(1, keepdim=True)
for _ in range(20):
    loss = weighted(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
