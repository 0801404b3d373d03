# expect: GI001
# why: model.table.weight, which is also model.project.weight, is in the groups 0 and 1.
# advice: Leave model.table.weight out of one of the two groups: it is one tensor.
# lines: failed=30 called=38
"""A language model whose weights are tied, with a rate of its own for the embedding."""

import torch
from torch import nn


class Words(nn.Module):
    """Predict the next of twelve words."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(12, 16)
        self.mix = nn.Linear(16, 16)
        self.project = nn.Linear(16, 12, bias=False)
        self.project.weight = self.table.weight

    def forward(self, word):
        return self.project(torch.tanh(self.mix(self.table(word))))


def optimizer_of(model):
    """Let the embedding learn slowly."""
    slow = list(model.table.parameters())
    fast = [*model.mix.parameters(), *model.project.parameters()]  # -
    fast = list(model.mix.parameters())  # +
    return torch.optim.Adam([{"params": slow, "lr": 0.01}, {"params": fast, "lr": 0.05}])


torch.manual_seed(0)
model = Words()
word = torch.arange(12)
after = (word * 5 + 1) % 12
history = []
optimizer = optimizer_of(model)
for _ in range(60):
    loss = nn.functional.cross_entropy(model(word), after)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
