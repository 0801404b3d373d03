# expect: GI001
# advice: Bring both to one shape: unsqueeze(1) for the target, or squeeze(1) for the output.
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
x = torch.randn(32, 4)
y = (x.sum(1) > 0).float()
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = nn.functional.binary_cross_entropy_with_logits(net(x), y)  # -
    loss = nn.functional.binary_cross_entropy_with_logits(net(x), y.unsqueeze(1))  # +
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
