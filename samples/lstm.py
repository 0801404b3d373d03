"""A recurrent network: the graph repeats once per time step, and every step shares the same weights.

Try: gradinspect trace samples/lstm.py
"""

import torch
from torch import nn
from torch.nn import functional as F


class Tagger(nn.Module):
    def __init__(self, vocab_size=50, width=32, num_tags=5):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, width)
        self.cell = nn.LSTMCell(width, width)
        self.tags = nn.Linear(width, num_tags)

    def forward(self, words):
        state = None
        hidden = []
        for word in self.embed(words).unbind(dim=1):
            state = self.cell(word, state)
            hidden.append(state[0])
        return self.tags(torch.stack(hidden, dim=1))


torch.manual_seed(0)
model = Tagger()
words = torch.randint(50, (8, 20))
tags = torch.randint(5, (8, 20))
loss = F.cross_entropy(model(words).transpose(1, 2), tags)
loss.backward()

print(f"loss {loss.item():.4f}")
