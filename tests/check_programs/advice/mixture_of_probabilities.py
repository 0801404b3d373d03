# expect: GI351
# advice: Pass what goes into softmax at mixture_of_probabilities.py:15 to mixture_of_probabilities.py:16.
"""A cross entropy by hand takes the output of a softmax for scores."""

import torch
from torch import nn

torch.manual_seed(0)
model, history = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 4)), []
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
x, rows = torch.randn(64, 6), torch.arange(64)
y = x[:, :4].argmax(1)
for _ in range(20):
    scores = model(x)  # +
    scores = model(x).softmax(1)  # -
    log_p = scores - scores.logsumexp(1, keepdim=True)
    loss = -log_p[rows, y].mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
