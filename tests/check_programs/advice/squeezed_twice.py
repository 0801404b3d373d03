# expect: GI701
# advice: reshape
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv1d(3, 1, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x, y = torch.randn(16, 3, 4), torch.randn(16)
losses = []
for _ in range(20):
    prediction = model(x)
    prediction = prediction.reshape(16)  # +
    loss = ((prediction - y) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
