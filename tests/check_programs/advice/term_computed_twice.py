# expect: GI331
# why: What term_computed_twice.py:15 computes is part of the loss already
# advice: Add it once: take the second one out of term_computed_twice.py:17, or multiply it by 2 if that is meant.
# lines: term=15 again=17 added=17
import torch
from torch import nn

torch.manual_seed(0)
model, criterion, history = nn.Linear(8, 3), nn.CrossEntropyLoss(), []
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
x = torch.randn(64, 8)
y = x[:, :3].argmax(1)
for _ in range(8):
    out = model(x)
    terms = {"ce": criterion(out, y), "decay": 1e-3 * model.weight.square().sum()}
    loss = sum(terms.values())
    loss = loss + criterion(out, y)  # -
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
