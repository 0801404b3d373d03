# expect: GI501
# why: A row of which every entry is -inf has no softmax.
# advice: At attention_over_padding.py:15, mask with torch.finfo(x.dtype).min instead of -inf
# lines: made=17 masked=15 backward=20
# never: harmless values
import torch
from torch import nn

torch.manual_seed(0)
query, key = nn.Linear(8, 8), nn.Linear(8, 8)
optimizer = torch.optim.SGD([*query.parameters(), *key.parameters()], lr=0.05)
x, history = torch.randn(2, 4, 8), []
is_padding = torch.tensor([[True] * 4, [False] * 4])
for _ in range(6):
    scores = (query(x) @ key(x).mT).masked_fill(is_padding[:, None], -torch.inf)  # -
    scores = (query(x) @ key(x).mT).masked_fill(is_padding[:, None], torch.finfo(x.dtype).min)  # +
    weights = scores.softmax(-1)
    loss = ((weights @ x)[1] - x[1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
