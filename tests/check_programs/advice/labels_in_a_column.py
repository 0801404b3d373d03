# expect: GI001
# advice: Labels have one dimension: at labels_in_a_column.py:13, pass y.squeeze(1), or argmax(1) of a one-hot target.
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 3)
x = torch.randn(32, 4)
y = x[:, :3].argmax(1, keepdim=True)
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = nn.functional.cross_entropy(net(x), y)  # -
    loss = nn.functional.cross_entropy(net(x), y.squeeze(1))  # +
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
