# expect: GI363
# why: clears all that the call at cleared_between_losses.py:20 has computed before it is used
# advice: Clear the gradients only where cleared_between_losses.py:29 has just run, not for each backward.
# lines: cleared=19 backward=20 step=29
import torch
from torch import nn

torch.manual_seed(0)
trunk, left, right = nn.Linear(6, 8), nn.Linear(8, 1), nn.Linear(8, 1)
parts = nn.ModuleList([trunk, left, right])
optimizer = torch.optim.Adam(parts.parameters(), lr=0.02)
x = torch.randn(48, 6)
y, z = x.sum(1, keepdim=True), x[:, :1] - x[:, 1:2]
history = []


def collect(loss, *, keeps):

    optimizer.zero_grad()  # -
    loss.backward(retain_graph=keeps)


for _ in range(8):
    hidden = trunk(x).tanh()
    of_left, of_right = (left(hidden) - y).square().mean(), (right(hidden) - z).square().mean()
    history.append(of_left.item())
    collect(of_left, keeps=True)
    collect(of_right, keeps=False)
    optimizer.step()
    optimizer.zero_grad()  # +
print("loss", history[0], history[-1])
