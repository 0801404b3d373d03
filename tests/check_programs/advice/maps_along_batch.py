# expect: GI353
# why: softmax runs over axis 0 of [5, 3, 6, 10], which a convolution has made: that is the batch
# advice: Pass dim=1, the channels, at maps_along_batch.py:16
# lines: softmax=16 backward=21
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(4, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 3, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
pictures, history = torch.randn(5, 4, 6, 10), []
classes = pictures[:, :3].argmax(1)
maps = nn.functional.one_hot(classes, 3).movedim(-1, 1).float()
for _ in range(8):
    scores = model(pictures)
    found = torch.softmax(scores, dim=0)  # -
    found = torch.softmax(scores, dim=1)  # +
    common = 2 * (found * maps).sum((0, 2, 3))
    loss = 1 - (common / (found + maps).sum((0, 2, 3))).mean()  # dice
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
