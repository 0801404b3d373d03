# expect: GI001
# advice: At tensor_of_tensors.py:13, put tensors together with torch.stack(), which keeps their graph, instead of
# advice: torch.tensor().
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 2)
x = torch.randn(8, 4)
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
history = []
for _ in range(30):
    outputs = torch.tensor([net(one) for one in x])  # -
    outputs = torch.stack([net(one) for one in x])  # +
    loss = (outputs - x[:, :2]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
