# expect: GI380
# advice: Which option of Adam at eps_of_the_wrong_sign.py:9 makes its step so small, such as eps?
# lines: backward=15 optimizer=9 step=16
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, eps=1e8)  # -
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, eps=1e-8)  # +
x, losses = torch.randn(32, 8), []
for _ in range(20):
    loss = (model(x) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
