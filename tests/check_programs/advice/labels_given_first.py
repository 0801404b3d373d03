# expect: GI341
# why: gives binary_cross_entropy_with_logits y as the input, which is 0 or 1 everywhere
# advice: Exchange the first two arguments at labels_given_first.py:19: (scores, y).
# lines: loss=19
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
x = torch.randn(64, 6)
y = (x.sum(1, keepdim=True) > 0).float()
history = []
for _ in range(20):
    optimizer.zero_grad()
    scores = model(x)

    loss = criterion(y, scores)  # -
    loss = criterion(scores, y)  # +
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
