# expect: GI355
# advice: At targets_up_to_255.py:11, scale the targets to 0 and 1.
# lines: labels=11 loss=15
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 6)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
x, losses = torch.randn(64, 4), []
image = torch.randint(256, (64, 6)).float()
for _ in range(30):
    target = image  # -
    target = image / 255  # +
    loss = nn.functional.binary_cross_entropy_with_logits(model(x), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
