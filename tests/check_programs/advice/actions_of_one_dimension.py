# expect: GI001
# advice: Give the index as many dimensions as the input: at actions_of_one_dimension.py:14, pass
# advice: actions.unsqueeze(1).
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 3)
x = torch.randn(32, 4)
actions = torch.randint(3, (32,))
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = (net(x).gather(1, actions) - 1).square().mean()  # -
    loss = (net(x).gather(1, actions.unsqueeze(1)) - 1).square().mean()  # +
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
