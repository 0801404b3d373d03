# expect: GI353
# why: softmax runs over axis 0 of [16, 5], which is the batch: the loss has 16 rows as well.
# advice: Pass dim=-1 at weights_along_the_batch.py:15.
# lines: softmax=15 loss=22 backward=26
import torch
from torch import nn

torch.manual_seed(0)
body, score, head = nn.Linear(6, 12), nn.Linear(12, 1), nn.Linear(12, 3)
optimizer = torch.optim.Adam([*body.parameters(), *score.parameters(), *head.parameters()], lr=0.02)
x, y = torch.randn(16, 5, 6), torch.randint(3, (16,))


def pooled(values):
    weights = score(values).squeeze(-1).softmax(dim=0)  # -
    weights = score(values).squeeze(-1).softmax(dim=-1)  # +
    return torch.einsum("bn,bnh->bh", weights, values)


history = []
for _ in range(5):
    loss = nn.functional.cross_entropy(head(pooled(body(x).relu())), y)

    history.append(loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", history[0], history[-1])
