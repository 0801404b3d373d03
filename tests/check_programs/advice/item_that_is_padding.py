# expect: GI325
# why: Its row is zero, and gets no gradient.
# advice: Is item 0 one to be learned? Then leave padding_idx out, or count items from 1.
# lines: ignored=15
import torch
from torch import nn

torch.manual_seed(0)
items = nn.Embedding(8, 4, padding_idx=0)  # -
items = nn.Embedding(8, 4)  # +
head, history = nn.Linear(4, 3), []
optimizer = torch.optim.Adam([*items.parameters(), *head.parameters()], lr=0.05)
item = torch.randint(8, (64,))
for _ in range(8):
    loss = nn.functional.cross_entropy(head(items(item)), item % 3)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
