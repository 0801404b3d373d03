# expect: GI351
# advice: Pass what goes into sigmoid at sigmoid_before_its_loss.py:15 to the loss; apply sigmoid only where
# advice: probabilities are read.
# lines: applied=15 backward=19 loss=16
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
x = torch.randn(64, 4)
y, losses = (x[:, :1] > 0).float(), []
for _ in range(30):
    score = model(x)
    p = torch.sigmoid(score)
    loss = nn.functional.binary_cross_entropy_with_logits(p, y)  # -
    loss = nn.functional.binary_cross_entropy_with_logits(score, y)  # +
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
