"""Policies that learn from rewards, from costs, and from what others would have brought, each with its sign."""

import torch
from torch import nn
from torch.distributions import Bernoulli, Categorical, Normal
from torch.nn import functional as F

torch.manual_seed(0)
net = nn.Linear(3, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for _ in range(4):
    scores = net(torch.randn(16, 3))
    many, two, real = Categorical(logits=scores), Bernoulli(logits=scores[:, 0]), Normal(scores[:, 1], 1.0)
    chosen, yes, drawn = many.sample(), two.sample(), real.sample()
    reward = (chosen == 1).float()
    cost, baseline = 1 - reward, torch.full((16,), 0.5)
    loss = -(many.log_prob(chosen) * reward).mean()
    loss = loss + (many.log_prob(chosen) * cost).mean()
    loss = loss + (-many.log_prob(chosen) * reward).mean()
    loss = loss - (two.log_prob(yes) * reward).mean() + (-two.log_prob(yes) * (reward - reward.mean())).mean()
    log_prob = two.log_prob(yes)
    surprise, advantage = -log_prob, baseline - reward
    loss = loss + (surprise * reward).mean() - torch.mean(log_prob * reward)
    loss = loss + (log_prob * advantage).mean() + (log_prob * -reward).mean()
    rewards = -((drawn - 1) ** 2)
    loss += -1 * (real.log_prob(drawn) * rewards).mean()
    loss = loss + (F.cross_entropy(scores, chosen, reduction="none") * reward).mean()
    objective = (real.log_prob(drawn) * rewards).mean()
    loss = loss - 0.5 * objective
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
