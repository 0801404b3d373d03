# expect: GI001
# advice: A sequence is empty: drop it, or give it one token, as that of padding.
"""One text has no letters."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

torch.manual_seed(0)
embed, rnn, head = nn.Embedding(28, 8), nn.GRU(8, 16, batch_first=True), nn.Linear(16, 1)
optimizer = torch.optim.Adam([*embed.parameters(), *rnn.parameters(), *head.parameters()], lr=0.02)
ids, history = torch.randint(0, 28, (8, 5)), []
lengths = torch.tensor([5, 3, 2, 5, 0, 4, 1, 2])  # -
lengths = torch.tensor([5, 3, 2, 5, 1, 4, 1, 2])  # +
for _ in range(20):
    packed = pack_padded_sequence(embed(ids), lengths, batch_first=True, enforce_sorted=False)
    loss = (head(rnn(packed)[1][-1]).squeeze(1) - lengths / 5).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
