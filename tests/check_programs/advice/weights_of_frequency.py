# expect: GI342
# why: weight of cross_entropy has the proportions of the labels.
# advice: At weights_of_frequency.py:13, make weight the inverse of the number of its labels, for each class.
# lines: weights=13
import torch
from torch import nn

torch.manual_seed(0)
labels = torch.multinomial(torch.tensor([0.75, 0.17, 0.08]), 600, replacement=True)
x = torch.randn(600, 5)
x[torch.arange(600), labels] += 2
counts = torch.bincount(labels, minlength=3)
weight = counts / len(labels)  # -
weight = len(labels) / (3 * counts)  # +
model = nn.Linear(5, 3)
criterion = nn.CrossEntropyLoss(weight=weight)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
history = []
for part in torch.arange(600).split(60):
    loss = criterion(model(x[part]), labels[part])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
