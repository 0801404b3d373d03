# expect: GI301
# advice: Remove .item() at loss_through_number.py:15, use torch functions only from there on, and value itself
# lines: detached=15 used=17
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(8, 4), torch.randn(8, 2)
history = []


def measured() -> torch.Tensor:
    value = (model(x) - y).square().mean().item()  # -
    value = (model(x) - y).square().mean()  # +
    return torch.tensor(value, requires_grad=True)  # -
    return value  # +


for _ in range(10):
    loss = measured()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
