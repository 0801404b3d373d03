"""A tagger that returns probabilities for each token, which are flattened before cross entropy."""

import torch
from torch import nn

torch.manual_seed(0)
embed, rnn, tag = nn.Embedding(20, 6), nn.GRU(6, 8, batch_first=True), nn.Linear(8, 3)
parameters = [p for part in (embed, rnn, tag) for p in part.parameters()]
optimizer = torch.optim.Adagrad(parameters)
words, tags = torch.randint(20, (4, 7)), torch.randint(3, (4, 7))
for _ in range(2):
    hidden, _ = rnn(embed(words))
    probs = tag(hidden).softmax(-1)
    loss = nn.functional.cross_entropy(probs.view(-1, 3), tags.view(-1), ignore_index=0)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
# expect: GI351 applied=13 loss=14 backward=16
