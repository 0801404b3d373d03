# expect: GI351
# advice: Remove that Softmax from the model; apply softmax only where probabilities are read.
# lines: backward=16 layer=8 loss=14
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 3), nn.Softmax(dim=1))  # -
model = nn.Sequential(nn.Linear(4, 3))  # +
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
x = torch.randn(64, 4)
y, losses = x[:, :3].argmax(1), []
for _ in range(30):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
