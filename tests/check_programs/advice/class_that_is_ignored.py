# expect: GI325
# why: ignore_index is 0, and
# advice: Is class 0 one to be learned? Then leave ignore_index out, or give it another value.
# lines: ignored=16
import torch
from torch import nn

torch.manual_seed(0)
model, history = nn.Linear(8, 4), []
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
criterion = nn.CrossEntropyLoss(ignore_index=0)  # -
criterion = nn.CrossEntropyLoss()  # +
x = torch.randn(64, 8)
y = x[:, :4].argmax(1)
for _ in range(8):
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
