# expect: GI601
# advice: At relu_of_a_large_step.py:19, use leaky_relu, which passes a gradient there, too, or a smaller learning
# advice: rate if a step made it so.
# lines: backward=21 zeroed=19
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))  # -
model = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(), nn.Linear(8, 1))  # +
with torch.no_grad():
    model[0].weight.copy_(-model[0].weight.abs())
    model[0].bias.copy_(-model[0].bias.abs())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.rand(32, 4)
y = x.sum(1, keepdim=True)
losses = []
for _ in range(60):
    loss = (model(x) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
