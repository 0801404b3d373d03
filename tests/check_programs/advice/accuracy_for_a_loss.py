# expect: GI302
# advice: Compute the loss from the scores behind argmax at accuracy_for_a_loss.py:15, before any softmax or sigmoid:
# advice: cross_entropy(scores, target.long()) where each row has a score for each class,
# lines: backward=18 detached=15 read=14
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
x = torch.randn(64, 4)
y, losses = x[:, :3].argmax(1), []
for _ in range(30):
    scores = model(x)
    loss = -(scores.argmax(1) == y).float().mean()  # -
    loss = nn.functional.cross_entropy(scores, y)  # +
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
