# expect: GI001
# advice: Dimension 1 has 4 entries, counted from 0, and 4 is none of them: do the indices begin at 1, or count the
# advice: entries of another tensor?
"""The actions of the log begin with 1."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
states, actions, history = torch.randn(64, 6), torch.arange(64) % 4 + 1, []
rewards = states[torch.arange(64), actions]
for _ in range(20):
    value = model(states).gather(1, actions[:, None])  # -
    value = model(states).gather(1, actions[:, None] - 1)  # +
    loss = nn.functional.smooth_l1_loss(value.squeeze(1), rewards)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
