"""A hook that is meant to scale the gradients of features, and loses them in a comparison."""

import torch
from torch import nn

torch.manual_seed(0)
body, head = nn.Linear(5, 7), nn.Linear(7, 2)
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)


def limited(grad):
    return grad * (grad.norm() > 1e6)


for _ in range(3):
    features = body(torch.randn(9, 5)).relu()
    features.register_hook(limited)
    loss = nn.functional.cross_entropy(head(features), torch.randint(0, 2, (9,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
# expect: GI803 hooked=17 backward=20
