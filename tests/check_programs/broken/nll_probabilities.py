"""nn.NLLLoss of probabilities: the loss is negative from the first step on."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 3), nn.Softmax(dim=-1))
criterion = nn.NLLLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    outputs = model(torch.randn(8, 6))
    loss = criterion(outputs, torch.randint(3, (8,)))
    loss.backward()
    optimizer.step()
# expect: GI352 applied=12 loss=13 backward=14
