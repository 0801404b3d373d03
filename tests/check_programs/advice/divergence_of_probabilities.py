# expect: GI352
# advice: Replace softmax at divergence_of_probabilities.py:14 by log_softmax. The second argument stays as it is.
# lines: applied=14 backward=18 loss=16
import torch
from torch import nn

torch.manual_seed(0)
teacher, student = nn.Linear(4, 3), nn.Linear(4, 3)
optimizer = torch.optim.SGD(student.parameters(), lr=0.5)
x, losses = torch.randn(64, 4), []
with torch.no_grad():
    wanted = torch.softmax(3 * teacher(x), 1)
for _ in range(30):
    p = torch.softmax(student(x), 1)  # -
    p = torch.log_softmax(student(x), 1)  # +
    loss = nn.functional.kl_div(p, wanted, reduction="batchmean")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
