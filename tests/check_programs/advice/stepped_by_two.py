# expect: GI102
# advice: again after opt_b.step() at stepped_by_two.py:
# advice: Or call opt_a.step() and opt_b.step() after loss_2.backward()
import torch
from torch import nn

torch.manual_seed(0)
body, head = nn.Linear(4, 8), nn.Linear(8, 1)
opt_a = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.02)
opt_b = torch.optim.SGD(head.parameters(), lr=0.02)
x, y = torch.randn(16, 4), torch.randn(16, 1)
losses = []
for _ in range(20):
    out = head(torch.tanh(body(x)))
    loss_1, loss_2 = (out - y).square().mean(), out.abs().mean()
    opt_a.zero_grad()
    loss_1.backward(retain_graph=True)
    opt_a.step()
    opt_b.step()
    out = head(torch.tanh(body(x)))  # +
    loss_2 = out.abs().mean()  # +
    opt_a.zero_grad()
    loss_2.backward()
    opt_a.step()
    losses.append(loss_1.item())
print("loss", losses[0], losses[-1])
