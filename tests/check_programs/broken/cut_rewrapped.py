"""The loss is wrapped in a Variable again, which makes the error go away, and the gradients too."""

import torch
from torch import nn
from torch.autograd import Variable

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    prediction = model(torch.randn(5, 4))
    loss = nn.functional.mse_loss(prediction, torch.zeros(5, 2))
    loss = Variable(loss, requires_grad=True)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
# expect: GI301 read=11 detached=12 backward=15 step=16
