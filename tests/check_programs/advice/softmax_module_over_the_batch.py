# expect: GI353
# advice: Pass dim=1 where that LogSoftmax is made.
# lines: backward=16 layer=8 softmax=14
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 3), nn.LogSoftmax(dim=0))  # -
model = nn.Sequential(nn.Linear(4, 3), nn.LogSoftmax(dim=1))  # +
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
x = torch.randn(64, 4)
y, losses = x[:, :3].argmax(1), []
for _ in range(30):
    loss = nn.functional.nll_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
