"""The embedding is the output layer's weight as well; a causal mask is filled in place."""

import torch
from torch import nn

torch.manual_seed(0)
embedding, head = nn.Embedding(16, 8), nn.Linear(8, 16, bias=False)
head.weight = embedding.weight
layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
optimizer = torch.optim.Adam([*embedding.parameters(), *layer.parameters()])
tokens = torch.randint(16, (2, 6))
mask = torch.zeros(6, 6).masked_fill_(torch.ones(6, 6).triu(1).bool(), float("-inf"))
for _ in range(3):
    logits = head(layer(embedding(tokens), mask))
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
