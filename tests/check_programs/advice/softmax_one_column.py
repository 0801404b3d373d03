# expect: GI353
# why: length 1
# advice: sigmoid
# never: The cause is unknown
# never: differently
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(16, 3)
y = (x.sum(1, keepdim=True) > 0).float()
losses = []
for _ in range(30):
    p = torch.softmax(model(x), 1)  # -
    p = torch.sigmoid(model(x))  # +
    loss = (p - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
