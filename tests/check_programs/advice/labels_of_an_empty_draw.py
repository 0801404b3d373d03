# expect: GI323
# why: All 512 labels that cross_entropy got in 8 calls are 0
# advice: Look at where labels_of_an_empty_draw.py:10 takes the labels from.
# advice: takes the labels from. The upper end of torch.randint() is left out.
# lines: labels=10 loss=18
import torch
from torch import nn

torch.manual_seed(0)
y = torch.randint(0, 1, (64,))  # -
y = torch.randint(0, 2, (64,))  # +
x = torch.randn(64, 8)
x[y == 1, :2] += 2.0  # the second class is moved
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
history = []
for _ in range(8):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
