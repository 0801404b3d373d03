"""Parts that are frozen by requires_grad_, by requires_grad, and by leaving them out; one is thawed later."""

import torch
from torch import nn

torch.manual_seed(0)
stem, body, head = nn.Linear(5, 5), nn.Linear(5, 5), nn.Linear(5, 1)
stem.requires_grad_(False)
for weight in body.parameters():
    weight.requires_grad = False
optimizer = torch.optim.SGD(head.parameters(), lr=0.05, momentum=0.9)
for epoch in range(6):
    if epoch == 2:
        for weight in body.parameters():
            weight.requires_grad = True
        optimizer.add_param_group({"params": list(body.parameters())})
    optimizer.zero_grad()
    loss = (head(torch.relu(body(stem(torch.ones(4, 5))))) - 1).square().mean()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
