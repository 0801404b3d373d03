# expect: GI001
# advice: Leave 2.weight out of the file's state, and load the rest with strict=False: that layer has another size
# advice: here.
import torch
from torch import nn

torch.manual_seed(0)
state = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 100, bias=False)).state_dict()
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3, bias=False))
net.load_state_dict(state)  # -
del state["2.weight"]  # +
net.load_state_dict(state, strict=False)  # +
x = torch.randn(32, 4)
y = x[:, :3].argmax(1)
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = nn.functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
