# expect: GI363
# advice: Move the step at step_before_backward.py:14 behind step_before_backward.py:15.
# lines: backward=15 cleared=12 step=14
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, history = torch.randn(16, 8), []
for _ in range(5):
    optimizer.zero_grad()
    loss = (model(x) - x[:, :1]).square().mean()
    optimizer.step()  # -
    loss.backward()
    optimizer.step()  # +
    history.append(loss.item())
print("loss", history[0], history[-1])
