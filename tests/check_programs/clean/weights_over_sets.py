"""A softmax over axis 0 that is meant: over the nodes of one graph, and over the tokens that a slot is a mean of."""

import torch
from torch import nn

torch.manual_seed(0)
body, score, head = nn.Linear(6, 12), nn.Linear(12, 2), nn.Linear(24, 3)
parameters = [*body.parameters(), *score.parameters(), *head.parameters()]
optimizer = torch.optim.Adam(parameters, lr=0.02)
for _ in range(3):
    nodes = body(torch.randn(9, 6)).relu()
    weights = score(nodes).softmax(dim=0)  # of two heads, over the nodes
    graph = (weights.unsqueeze(-1) * nodes.unsqueeze(1)).sum(0).flatten()
    loss = nn.functional.cross_entropy(head(graph).unsqueeze(0), torch.tensor([1]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

slots, experts = nn.Linear(6, 4), nn.ModuleList(nn.Linear(6, 6) for _ in range(4))
optimizer = torch.optim.Adam([*slots.parameters(), *experts.parameters()], lr=0.02)
for _ in range(3):
    tokens = torch.randn(10, 6)
    dispatched = slots(tokens).softmax(dim=0).T @ tokens  # each slot is a mean of tokens
    made = torch.stack([expert(one) for expert, one in zip(experts, dispatched, strict=True)])
    mixed = slots(tokens).softmax(dim=1) @ made  # each token a mean of slots
    loss = nn.functional.mse_loss(mixed, tokens)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
