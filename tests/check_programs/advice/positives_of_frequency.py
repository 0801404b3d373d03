# expect: GI342
# why: pos_weight of binary_cross_entropy_with_logits has the proportions of the labels.
# advice: make pos_weight the number of negative labels divided by that of positive ones.
# lines: weights=11
import torch
from torch import nn

torch.manual_seed(0)
y = (torch.rand(512, 1) < 0.12).float()
x = torch.randn(512, 4) + 2 * y
positive = y.sum() / (1 - y).sum()  # -
positive = (1 - y).sum() / y.sum()  # +

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.BCEWithLogitsLoss(pos_weight=positive.clone())
history = []
for part in torch.arange(512).split(64):
    loss = criterion(model(x[part]), y[part])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
