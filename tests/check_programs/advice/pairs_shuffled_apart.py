# expect: GI326
# why: what one permutation of 32 examples has ordered with what another one has
# advice: Draw one permutation at pairs_shuffled_apart.py:14, and index inputs and targets with it.
# lines: drawn=14 loss=17
import torch
from torch import nn

torch.manual_seed(0)
model, history = nn.Linear(8, 3), []
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
x = torch.randn(32, 8)
y = x[:, :3].argmax(1)
for _ in range(8):
    a, b = x[torch.randperm(32)], y[torch.randperm(32)]  # -
    order = torch.randperm(32)  # +
    a, b = x[order], y[order]  # +
    loss = nn.functional.cross_entropy(model(a), b)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
