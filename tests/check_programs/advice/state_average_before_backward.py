# expect: GI401
# advice: average = average.detach()
# never: (loss + loss)
# never: once instead of both
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x, y = torch.randn(16, 3), torch.randn(16)
average, losses = torch.zeros(16), []
for _ in range(40):
    prediction = model(x).squeeze(-1)
    loss = (prediction - y).square().mean() + 0.1 * (prediction - average).square().mean()
    average = 0.9 * average + 0.1 * prediction
    optimizer.zero_grad()
    loss.backward()
    average = average.detach()  # +
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
