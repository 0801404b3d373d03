# expect: GI307
# advice: Assign the result at result_of_a_lookup_dropped.py:13 to a variable, and use that from there on.
# lines: backward=18
import torch
from torch import nn

torch.manual_seed(0)
body, head = nn.Linear(4, 8), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
x, losses = torch.randn(32, 4), []
for _ in range(20):
    states = {"first": body(x)}
    torch.tanh(states.get("first"))  # -
    h = torch.tanh(states.get("first"))  # +
    loss = (head(states["first"]) - x[:, :1]).square().mean()  # -
    loss = (head(h) - x[:, :1]).square().mean()  # +
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
