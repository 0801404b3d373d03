# expect: GI001
# advice: This torch has no GPU here. Write device = 'cuda' if torch.cuda.is_available() else 'cpu', and move models
# advice: and tensors with to(device).
import torch
from torch import nn

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"  # +
net = nn.Linear(4, 1).cuda()  # -
net = nn.Linear(4, 1).to(device)  # +
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
