"""A stateful GRU language model with truncated BPTT: the state goes from window to window, its history does not."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
text = "the quick brown fox jumps over the lazy dog and runs away. " * 3
vocabulary = sorted(set(text))
data = torch.tensor([vocabulary.index(c) for c in text])
data = data[: len(data) // 4 * 4].view(4, -1)


class CharModel(nn.Module):
    def __init__(self, size, hidden=24):
        super().__init__()
        self.embed = nn.Embedding(size, 12)
        self.gru = nn.GRU(12, hidden, batch_first=True)
        self.out = nn.Linear(hidden, size)
        self.state = None

    def forward(self, tokens):
        features, state = self.gru(self.embed(tokens), self.state)
        self.state = state.detach()
        return self.out(features)


model = CharModel(len(vocabulary))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(2):
    model.state = None
    for start in range(0, data.shape[1] - 11, 10):
        window = data[:, start : start + 11]
        loss = F.cross_entropy(model(window[:, :-1]).flatten(0, 1), window[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(epoch, loss.item().hex())
