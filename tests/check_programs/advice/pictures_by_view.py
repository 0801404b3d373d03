# expect: GI702
# why: pictures_by_view.py:14 makes [8, 3, 6, 10] of [8, 6, 10, 3] by a view
# advice: At pictures_by_view.py:14, use permute(0, 3, 1, 2) instead, which moves the elements.
# lines: viewed=14
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
read, history = torch.rand(8, 6, 10, 3), []  # as a decoder of files returns them
y = read.mean((1, 2)).argmax(1)
for _ in range(8):
    pictures = read.view(-1, 3, 6, 10)  # -
    pictures = read.permute(0, 3, 1, 2)  # +
    loss = nn.functional.cross_entropy(model(pictures), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
