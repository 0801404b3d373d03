# expect: GI001
# advice: Backward begins at one number: at loss_of_each_row.py:14, reduce the loss first, as mean() does.
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
x = torch.randn(32, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
history = []
for _ in range(20):
    loss = nn.functional.mse_loss(net(x), x.sum(1, keepdim=True), reduction="none")
    optimizer.zero_grad()
    loss.backward()  # -
    loss.mean().backward()  # +
    optimizer.step()
    history.append(loss.mean().item())
print("loss", history[0], history[-1])
