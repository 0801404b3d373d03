# expect: GI401
# advice: state = tuple(one.detach() for one in state)
# advice: after loss.backward()
import torch
from torch import nn

torch.manual_seed(0)
lstm, head = nn.LSTM(2, 4, batch_first=True), nn.Linear(4, 1)
optimizer = torch.optim.Adam([*lstm.parameters(), *head.parameters()], lr=0.02)
sequence = torch.randn(1, 60, 2)
state, losses = None, []
for start in range(0, 60, 3):
    chunk = sequence[:, start : start + 3]
    out, state = lstm(chunk, state)
    loss = (head(out) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    state = tuple(one.detach() for one in state)  # +
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
