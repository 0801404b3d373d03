# expect: GI401
# advice: Both losses are known before losses_in_a_dict.py:16: call (terms[0] + terms[1]).backward() once instead of
# advice: both calls.
# lines: backward=17 freed=16 new=14 old=13
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, losses = torch.randn(32, 4), []
for _ in range(20):
    out = model(x)
    terms = [(out[:, one] - x[:, one]).square().mean() for one in range(2)]
    optimizer.zero_grad()
    terms[0].backward()  # -
    terms[1].backward()  # -
    sum(terms).backward()  # +
    optimizer.step()
    losses.append(sum(terms).item())
print("loss", losses[0], losses[-1])
