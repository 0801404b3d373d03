# expect: GI001
# advice: Put bias_written_through_a_view.py:12 into 'with torch.no_grad():', so that the write is not recorded.
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 4)
x = torch.randn(16, 8)
y = torch.randint(4, (16,))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
prior = model.bias.view(2, 2)
prior[:, 0] -= 2.0  # -
with torch.no_grad():  # +
    prior[:, 0] -= 2.0  # +
history = []
for _ in range(5):
    loss = nn.functional.cross_entropy(model(x), y)
    history.append(loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", history[0], history[-1])
