# expect: GI368
# why: The first 30 steps of optimizer had the learning rate 0 and changed nothing: the scheduler that steps at
# advice: Let the function of the scheduler at whole_ramp.py:32 return a factor above 0: e / 30, not e // 30.
# lines: scheduler=32 step=31
"""A rate that rises to the middle and falls again."""

import torch
from torch import nn

TOTAL = 60


def ramp(step):
    """Return the factor of a step."""
    return min(step, TOTAL - step) // (TOTAL // 2)  # -
    return min(step, TOTAL - step) / (TOTAL // 2)  # +


torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, ramp)
history = []
for _ in range(40):
    x = torch.randn(16, 4)
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    history.append(loss.item())
    optimizer.zero_grad()
    loss.backward()
    # Each step has its rate.
    optimizer.step()
    scheduler.step()
print("loss", history[0], history[-1])
