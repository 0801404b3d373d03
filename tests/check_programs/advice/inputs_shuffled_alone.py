# expect: GI326
# why: takes the inputs by a permutation of 96, and the loss compares them with targets in the order before
# advice: Index the targets with the same order as inputs_shuffled_alone.py:17.
# lines: order=15 taken=17 loss=20
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(96, 8)
y = x[:, :3].argmax(1)
model, history = nn.Linear(8, 3), []
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
criterion = nn.CrossEntropyLoss()
for _ in range(4):
    order = torch.randperm(96)
    for first in range(0, 96, 32):
        inputs = x[order[first : first + 32]]
        labels = y[first : first + 32]  # -
        labels = y[order[first : first + 32]]  # +
        loss = criterion(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
print("loss", history[0], history[-1])
