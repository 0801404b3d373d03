"""Losses that are close to a softmax and right: distillation, focal loss, attention, soft targets, expected rewards."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
student, teacher, scorer = nn.Linear(6, 4), nn.Linear(6, 4), nn.Linear(6, 1)
gate, experts, query = nn.Linear(6, 3), nn.Linear(6, 3), nn.Linear(6, 5)
parts = (student, scorer, gate, experts, query)
optimizer = torch.optim.SGD([p for part in parts for p in part.parameters()], lr=0.1)
for _ in range(3):
    x, y = torch.randn(8, 6), torch.randint(4, (8,))
    logits = student(x)
    with torch.no_grad():
        soft = F.softmax(teacher(x) / 2, dim=1)
    losses = [
        F.kl_div(F.log_softmax(logits / 2, dim=1), soft, reduction="batchmean"),
        F.cross_entropy(logits, soft),
        F.nll_loss(F.log_softmax(logits, dim=1), y),
        F.nll_loss(torch.log(F.softmax(logits, dim=1) + 1e-6), y),
        F.cross_entropy(F.log_softmax(logits, dim=1), y),
    ]
    log_p = F.log_softmax(logits, dim=-1)
    p = log_p.exp()
    losses.append(F.nll_loss((1 - p) ** 2 * log_p, y))
    losses.append(F.mse_loss(F.softmax(logits, dim=1), F.one_hot(y, 4).float()))
    losses.append(-(p * torch.randn(8, 4)).sum(1).mean())
    one = scorer(x).squeeze(1)
    prob = torch.sigmoid(one)
    target = (y > 1).float()
    bce = F.binary_cross_entropy_with_logits(one, target, reduction="none")
    losses += [(bce * (1 - prob) ** 2).mean(), F.binary_cross_entropy(prob, target)]
    pooled = (F.softmax(scorer(x), dim=0) * x).sum(0)
    losses.append(pooled.square().mean())
    mixed = (F.softmax(gate(x), dim=1) * experts(x)).sum(1)
    losses.append((mixed - target).square().mean())
    q = query(x).view(8, 1, 5)
    weights = F.softmax(q @ q.transpose(1, 2), dim=-1)
    losses.append((weights @ q).square().mean())
    policy = torch.distributions.Categorical(probs=F.softmax(logits, dim=-1))
    losses.append(-(policy.log_prob(policy.sample()) * torch.randn(8)).mean())
    optimizer.zero_grad()
    loss = sum(losses)
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
