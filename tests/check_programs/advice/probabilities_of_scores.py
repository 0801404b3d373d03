# expect: GI001
# advice: Pass the outputs as they are to BCEWithLogitsLoss instead of BCELoss, or through a sigmoid before.
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
x = torch.randn(32, 4)
y = (x.sum(1, keepdim=True) > 0).float()
objective = nn.BCELoss()  # -
objective = nn.BCEWithLogitsLoss()  # +
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = objective(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
