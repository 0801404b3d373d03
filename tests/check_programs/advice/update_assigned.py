# expect: GI380
# why: update_assigned.py:20 makes new tensors of parameters and gradients, assigns them to a variable
# advice: p -= lr * p.grad, not p = p - lr * p.grad.
# lines: assigned=20 backward=17
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 3))
x, y = torch.randn(48, 6), torch.randint(3, (48,))
history = []
for _ in range(8):
    loss = nn.functional.cross_entropy(model(x), y)
    history.append(loss.item())

    model.zero_grad()
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p = p - 0.1 * p.grad  # -
            p -= 0.1 * p.grad  # +
print("loss", history[0], history[-1])
