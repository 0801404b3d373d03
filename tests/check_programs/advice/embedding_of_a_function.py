# expect: GI001
# advice: Remove sparse=True from their embeddings. Or pass these parameters to torch.optim.SparseAdam, and all others
# advice: to the optimizer that there is.
# lines: failed=21 optimizer=12
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
table = nn.Parameter(torch.randn(10, 4))
head = nn.Linear(4, 1)
optimizer = torch.optim.Adam([table, *head.parameters()], lr=0.05)
words, losses = torch.randint(10, (32,)), []
y = (words > 4).float().unsqueeze(1)
for _ in range(20):
    h = F.embedding(words, table, sparse=True)  # -
    h = F.embedding(words, table)  # +
    loss = (head(h) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
