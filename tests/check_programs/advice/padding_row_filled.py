# expect: GI384
# why: padding row 0. That row was zero, gets no gradient, and now stays as it was drawn.
# advice: After padding_row_filled.py:14, set the row to zero again, under torch.no_grad(): embedding.weight[0] = 0
# lines: filled=14 used=24
import torch
from torch import nn

torch.manual_seed(0)
embedding = nn.Embedding(30, 8, padding_idx=0)
head = nn.Linear(8, 2)
model = nn.ModuleList([embedding, head])
for parameter in model.parameters():
    if parameter.dim() > 1:
        nn.init.xavier_uniform_(parameter)
with torch.no_grad():  # +
    embedding.weight[0] = 0  # +
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
ids = torch.randint(1, 30, (64, 6))
ids[:, 4:] = 0
labels = torch.randint(2, (64,))
losses = []
for _ in range(20):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(head(embedding(ids).mean(1)), labels)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
