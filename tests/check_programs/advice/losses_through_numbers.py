# expect: GI301
# advice: Remove .item() at losses_through_numbers.py:17, use torch functions only from there on, and torch.stack(parts)
# lines: detached=17 used=19
# never: wrapped
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(3, 8, 4), torch.randn(3, 8, 2)
history = []
for _ in range(20):
    parts = []
    for inputs, wanted in zip(x, y, strict=True):
        part = (model(inputs) - wanted).abs().mean()
        parts.append(part.item() * 2)  # -
        parts.append(part * 2)  # +
    loss = torch.tensor(parts, requires_grad=True).mean()  # -
    loss = torch.stack(parts).mean()  # +
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
