# expect: GI001
# advice: At flag_of_a_result.py:10, write features = features.detach() instead.
import torch
from torch import nn

torch.manual_seed(0)
body, head = nn.Linear(4, 8), nn.Linear(8, 1)
x = torch.randn(32, 4)
features = body(x)
features.requires_grad = False  # -
features = features.detach()  # +
optimizer = torch.optim.Adam(head.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = (head(features) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
