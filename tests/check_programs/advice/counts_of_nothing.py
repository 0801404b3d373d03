# expect: GI502
# advice: Which value that counts_of_nothing.py:16 reads is 0, negative, very large or not finite itself?
# lines: backward=19 first=16 made=17
import torch
from torch import nn

torch.manual_seed(0)
layer = nn.Linear(3, 4)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.02)
x = torch.randn(32, 3)
y = torch.distributions.Dirichlet(torch.ones(4)).sample((32,))
losses = []
for _ in range(30):
    weights = torch.relu(layer(x))  # -
    weights = nn.functional.softplus(layer(x))  # +
    scale = torch.lgamma(weights.sum(1)) - torch.lgamma(weights).sum(1)
    loss = -(scale + ((weights - 1) * y.log()).sum(1)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
