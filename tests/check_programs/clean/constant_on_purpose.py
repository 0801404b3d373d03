"""Detached terms that are meant to be: a total for the log, an earlier loss, a baseline, a straight-through value."""

import torch
from torch import nn

torch.manual_seed(0)
model, value = nn.Linear(4, 3), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*model.parameters(), *value.parameters()], lr=0.1)
weights = [p.detach().clone() for p in model.parameters()]
before = None
for _ in range(3):
    x, y = torch.randn(8, 4), torch.randint(3, (8,))
    logits = model(x)
    p = logits.softmax(1)
    hard = nn.functional.one_hot(p.argmax(1), 3).float()
    chosen = p + (hard - p).detach()
    with torch.no_grad():
        floor = nn.functional.cross_entropy(model(x * 2), y)
    stay = sum((new - old).square().sum() for new, old in zip(model.parameters(), weights, strict=True))
    kl = (p.mean(0) * p.mean(0).log()).sum()
    advantage = torch.randn(8) - value(x).squeeze(1)
    loss = nn.functional.cross_entropy(logits, y) - floor + 0.1 * stay + chosen.square().mean() + kl.detach()
    loss = loss + advantage.square().mean() - (advantage.detach() * logits[:, 0]).mean()
    improved = loss if before is None else loss - before
    before = loss.detach()
    optimizer.zero_grad()
    improved.backward()
    optimizer.step()
    print(loss.item().hex(), (logits.argmax(1) == y).float().mean().item())
