# expect: GI001
# advice: The file has each name with 'module.' before it: at saved_in_parallel.py:10, load
# advice: {name.removeprefix('module.'): one for name, one in state.items()}.
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
state = nn.DataParallel(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))).state_dict()
net.load_state_dict(state)  # -
net.load_state_dict({name.removeprefix("module."): one for name, one in state.items()})  # +
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
