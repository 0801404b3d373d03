"""Results of casts and views that are used, or that change nothing, beside data that nothing learns from."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(6, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(6):
    x, y, spare = torch.rand(16, 6), torch.rand(16), torch.rand(16, 6)
    x.to(torch.float32)  # it has this type already
    x.cpu()
    x.squeeze(1)  # there is no axis to remove
    spare.double()  # nothing reads it
    spare.clamp(0.1, 0.9)
    x.clamp_(0.1, 0.9)
    y = y.unsqueeze(1)
    loss = nn.functional.mse_loss(model(x.float()), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
