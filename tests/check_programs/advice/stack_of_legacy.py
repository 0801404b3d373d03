# expect: GI302
# advice: torch.stack(
# never: wrapped
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x, y = torch.randn(5, 8, 3), torch.randn(5, 8, 1)
history = []
for _ in range(30):
    losses = [(model(part) - target).square().mean() for part, target in zip(x, y, strict=True)]
    loss = torch.FloatTensor(losses).mean()  # -
    loss = torch.stack(losses).mean()  # +
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
