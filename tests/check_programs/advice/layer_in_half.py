# expect: GI001
# advice: Convert the input to the dtype of the layer, or keep the layer in float32 and compute under
# advice: torch.autocast().
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1).half()  # -
net = nn.Linear(4, 1)  # +
x = torch.randn(32, 4)
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
