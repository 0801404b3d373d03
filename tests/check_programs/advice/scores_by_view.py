# expect: GI702
# why: scores_by_view.py:16 makes [4, 3, 6, 5] of [4, 6, 5, 3] by a view
# advice: move the axis instead: scores.movedim(-1, 1)
# lines: viewed=16 loss=18
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x, history = torch.randn(4, 6, 5, 8), []
y = x[..., :3].argmax(-1)
for _ in range(6):
    scores = model(x)
    rows, height, width, classes = scores.shape
    scores = scores.reshape(rows, classes, height, width)  # -
    scores = scores.movedim(-1, 1)  # +
    loss = nn.CrossEntropyLoss()(scores, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
