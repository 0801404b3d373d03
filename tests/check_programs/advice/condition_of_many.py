# expect: GI001
# advice: Is one true element enough, or must all be? At condition_of_many.py:12, write any() or all().
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
x = torch.randn(32, 4)
largest = net(x).abs()
is_large = largest > 100  # -
is_large = (largest > 100).any()  # +
if is_large:
    print("large outputs")
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
