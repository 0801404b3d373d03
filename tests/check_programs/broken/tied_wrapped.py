"""A language model whose output layer wraps the embedding's weight in a parameter of its own."""

import torch
from torch import nn


class Words(nn.Module):
    def __init__(self, num_words, width):
        super().__init__()
        self.table = nn.Embedding(num_words, width)
        self.mix = nn.Linear(width, width)
        self.scores = nn.Linear(width, num_words)
        self.scores.weight = nn.Parameter(self.table.weight)

    def forward(self, words):
        return self.scores(torch.tanh(self.mix(self.table(words))))


torch.manual_seed(0)
model = Words(11, 6)
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
for _ in range(2):
    words = torch.randint(11, (20,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(words), words.roll(1)).backward()
    optimizer.step()
# expect: GI375 shared=13 step=26
