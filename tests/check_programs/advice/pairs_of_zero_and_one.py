# expect: GI355
# advice: At pairs_of_zero_and_one.py:11, make -1 of 0: target * 2 - 1.
# lines: labels=11 loss=15
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
a, b, losses = torch.randn(64, 4), torch.randn(64, 4), []
y = (a[:, 0] * b[:, 0] > 0).float()
for _ in range(30):
    target = y  # -
    target = y * 2 - 1  # +
    loss = nn.functional.cosine_embedding_loss(model(a), model(b), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
