# expect: GI301
# advice: Delete loss_made_a_leaf.py:
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(16, 4), torch.randint(3, (16,))
losses = []


def compute():
    out = model(x).detach()  # -
    out = model(x)  # +
    return nn.functional.cross_entropy(out, y)


for _ in range(20):
    loss = compute()
    loss.requires_grad = True  # -
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
