# expect: GI379
# why: optimizer holds temperature, which does not require grad
# advice: call requires_grad_() on what plain_temperature.py:12 assigns.
# lines: made=12 optimizer=14 step=23
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(16, 12)
images = nn.Linear(12, 8)
texts = nn.Linear(12, 8)
temperature = torch.tensor(0.5)  # -
temperature = torch.tensor(0.5).requires_grad_()  # +
optimizer = torch.optim.Adam([*images.parameters(), *texts.parameters(), temperature], lr=0.02)
history = []
for _ in range(8):
    a, b = nn.functional.normalize(images(x), dim=1), nn.functional.normalize(texts(x), dim=1)
    loss = nn.functional.cross_entropy(a @ b.T / temperature, torch.arange(16))
    if not history:
        history.append(loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
history.append(loss.item())
print("loss", history[0], history[-1])
