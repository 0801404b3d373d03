"""The softmax is a layer of a Sequential, and the targets are smoothed. Each pixel has a class."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 5, 1), nn.Softmax(dim=1))
loss_fn = nn.CrossEntropyLoss(label_smoothing=0.1)


def run_batch(batch):
    image, mask = batch
    return loss_fn(model(image), mask)


optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(2):
    optimizer.zero_grad(set_to_none=True)
    run_batch((torch.randn(2, 3, 6, 6), torch.randint(5, (2, 6, 6)))).backward()
    optimizer.step()
# expect: GI351 loss=13 backward=19
