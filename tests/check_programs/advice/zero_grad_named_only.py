# expect: GI362
# why: zero_grad_named_only.py:13 names zero_grad and does not call it
# advice: Add the parentheses at zero_grad_named_only.py:13: optimizer.zero_grad()
# lines: step=19 uncalled=13 backward=18
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, history = torch.randn(16, 4), []
for _ in range(6):
    optimizer.zero_grad  # noqa: B018  # -

    optimizer.zero_grad()  # +
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    history.append(loss.item())
    loss.backward()
    optimizer.step()
print("loss", history[0], history[-1])
