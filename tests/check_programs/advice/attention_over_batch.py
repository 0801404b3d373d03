# expect: GI353
# why: softmax runs over axis 0 of [16, 5, 1], which is the batch: the loss has 16 rows as well.
# advice: Pass dim=1 at attention_over_batch.py:14.
# lines: softmax=14 loss=18 backward=21
import torch
from torch import nn

torch.manual_seed(0)
score, out = nn.Linear(4, 1), nn.Linear(4, 2)
optimizer = torch.optim.Adam([*score.parameters(), *out.parameters()], lr=0.05)
x, history = torch.randn(16, 5, 4), []
y = (x.sum((1, 2)) > 0).long()
for _ in range(6):
    weights = torch.softmax(score(x), dim=0)  # -
    weights = torch.softmax(score(x), dim=1)  # +
    pooled = (weights * x).sum(1)

    loss = nn.functional.cross_entropy(out(pooled), y)
    history.append(loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", history[0], history[-1])
