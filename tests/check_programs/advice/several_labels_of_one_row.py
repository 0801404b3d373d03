# expect: GI355
# advice: At several_labels_of_one_row.py:17, use binary_cross_entropy_with_logits, which asks for each label by
# advice: itself.
"""An example may have several labels."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 6))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x, history = torch.randn(64, 10), []
y = (x[:, :6] > 0).float()
loss_of = nn.CrossEntropyLoss()  # -
loss_of = nn.BCEWithLogitsLoss()  # +
for _ in range(20):
    loss = loss_of(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
