# expect: GI307
# advice: Collect the results, and use them in place of what the loop at clamped_in_a_loop.py:17 goes through: a list
# advice: of o.clamp(min=-1) for each o. 'o = o.clamp(min=-1)' changes the variable alone, which is enough only if the
# advice: rest of the loop reads it.
# lines: backward=21
import torch
from torch import nn

torch.manual_seed(0)
model = nn.ModuleList([nn.Linear(4, 3) for _ in range(2)])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(16, 4), torch.randint(3, (16,))
losses = []
for _ in range(20):
    outs = [m(x) for m in model]
    for o in outs:  # -
        o.clamp(min=-1)  # -
    outs = [o.clamp(min=-1) for o in outs]  # +
    loss = sum(nn.functional.cross_entropy(o, y) for o in outs)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
