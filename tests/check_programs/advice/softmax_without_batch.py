# expect: GI001
# advice: Dimensions are counted from 0: use dim=-1 for the last, or give the tensor a batch.
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 3)
x = torch.randn(4)
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = -torch.log_softmax(net(x), dim=1)[2]  # -
    loss = -torch.log_softmax(net(x), dim=-1)[2]  # +
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
