# expect: GI503
# why: each step of optimizer, whose learning rate is 0.8, goes further past its goal than the one before.
# advice: Use a smaller learning rate than 0.8 at steps_too_long.py:12, or scale inputs and targets to about one.
# lines: optimizer=12 backward=20 step=21
import torch
from torch import nn

torch.manual_seed(0)
x = torch.rand(320, 3) * 6
target = x.sum(1, keepdim=True) * x[:, :1].sqrt()
model = nn.Sequential(nn.Linear(3, 24), nn.ReLU(), nn.Linear(24, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.8, momentum=0.9)  # -
optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)  # +
history = []
for _ in range(6):
    for rows in torch.randperm(320).split(32):
        predicted = model(x[rows])
        loss = (predicted - target[rows]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
print("loss", history[0], history[-1])
