# expect: GI702
# why: scores_flattened_by_view.py:15 makes [300, 3] of [5, 3, 6, 10] by a view
# advice: move the axis first: scores.movedim(1, -1)
# lines: viewed=15 loss=17
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(4, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 3, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
picture, history = torch.randn(5, 4, 6, 10), []
labels = picture[:, :3].argmax(1)
for _ in range(8):
    scores = model(picture)
    flat = scores.view(-1, scores.shape[1])  # -
    flat = scores.movedim(1, -1).reshape(-1, scores.shape[1])  # +
    loss = nn.functional.cross_entropy(flat, labels.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
