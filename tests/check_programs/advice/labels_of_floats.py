# expect: GI001
# advice: Labels of classes are whole numbers: make the target with long().
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 3)
x = torch.randn(32, 4)
y = x[:, :3].argmax(1).float()  # -
y = x[:, :3].argmax(1).long()  # +
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = nn.functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
