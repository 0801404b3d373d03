# expect: GI354
# why: actions_of_all.py:13 selects 16 columns of each of 16 rows: the result is [16, 16]
# advice: At actions_of_all.py:13, take one element of each row: .gather(1, index.unsqueeze(1)).squeeze(1).
# lines: indexed=13 loss=15 backward=18
import torch
from torch import nn

torch.manual_seed(0)
network, history = nn.Linear(4, 3), []
optimizer = torch.optim.Adam(network.parameters(), lr=0.05)
state, action, returned = torch.randn(16, 4), torch.randint(3, (16,)), torch.randn(16, 1)
for _ in range(6):
    value = network(state)[:, action]  # -
    value = network(state).gather(1, action.unsqueeze(1)).squeeze(1)  # +
    loss = nn.functional.mse_loss(value, returned.expand(16, 16) if value.dim() > 1 else returned.squeeze(1))
    history.append(loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", history[0], history[-1])
