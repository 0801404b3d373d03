# expect: GI330
# advice: Ignore the tokens that are given, and count those that are hidden: labels[~hidden] = -100.
"""The labels of the hidden words are those that are ignored."""

import torch
from torch import nn

torch.manual_seed(0)
words, history = 20, []
table, places = nn.Embedding(words, 32), nn.Embedding(12, 32)
layer, head = nn.TransformerEncoderLayer(32, 2, 64, dropout=0.0, batch_first=True), nn.Linear(32, words)
parts = nn.ModuleList([table, places, layer, head])
optimizer = torch.optim.Adam(parts.parameters(), lr=0.003)
for _ in range(40):
    ids = (torch.randint(1, words, (32, 1)) + torch.arange(12)) % (words - 1) + 1
    hidden, labels = torch.rand(32, 12) < 0.2, ids.clone()
    labels[hidden] = -100  # -
    labels[~hidden] = -100  # +
    scores = head(layer(table(ids.masked_fill(hidden, 0)) + places.weight))
    loss = nn.functional.cross_entropy(scores.flatten(0, 1), labels.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
