# expect: GI353
# why: length 1
# advice: two
# never: The cause is unknown
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 1)  # -
model = nn.Linear(3, 2)  # +
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(16, 3)
y = torch.zeros(16, dtype=torch.long)
y[:0] = 1
losses = []
for _ in range(30):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
