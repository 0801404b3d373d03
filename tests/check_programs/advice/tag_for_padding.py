# expect: GI325
# why: ignore_index is 0, but the label of padded tokens is 4, which no other token has.
# advice: Pass ignore_index=4 to the loss at tag_for_padding.py:25.
# lines: ignored=25
import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
history = []
table, head = nn.Embedding(20, 8, padding_idx=0), nn.Linear(8, 5)
optimizer = torch.optim.Adam([*table.parameters(), *head.parameters()], lr=0.05)


def batch():
    words = torch.randint(1, 20, (16, 10))
    tags = torch.where(words < 14, 0, words % 3 + 1)
    is_padding = torch.arange(10)[None] >= torch.randint(4, 10, (16, 1))
    return words.masked_fill(is_padding, 0), tags.masked_fill(is_padding, 4)


for _ in range(8):
    words, tags = batch()
    scores = head(table(words)).flatten(0, 1)
    loss = cross_entropy(scores, tags.flatten(), ignore_index=0)  # -
    loss = cross_entropy(scores, tags.flatten(), ignore_index=4)  # +
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
