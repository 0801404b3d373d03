# expect: GI302
# advice: Compute the loss from what argmax reads at accuracy_for_a_loss.py:15, by a function that has a derivative,
# advice: such as cross_entropy(scores, target) or binary_cross_entropy_with_logits(scores, target).
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
