# expect: GI301
# advice: Remove detach() at made_to_require_grad.py:13 if this path should train. Delete made_to_require_grad.py:16:
# advice: it only hides that there is no graph.
# lines: backward=18 detached=13 forced=16 read=13 step=19 used=15
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, losses = torch.randn(32, 8), []
for _ in range(20):
    guess = model(x).detach()  # -
    guess = model(x)  # +
    loss = (guess - x[:, :1]).square().mean()
    loss.requires_grad_()  # -
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
