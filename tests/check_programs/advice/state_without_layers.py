# expect: GI001
# advice: The state has the shape [layers, batch, hidden]: give it a first dimension for the layers, as unsqueeze(0)
# advice: does.
"""The state is made with one row for each example."""

import torch
from torch import nn

torch.manual_seed(0)
rnn, head = nn.LSTM(4, 12, batch_first=True), nn.Linear(12, 1)
optimizer = torch.optim.Adam([*rnn.parameters(), *head.parameters()], lr=0.02)
x, history = torch.randn(16, 9, 4), []
for _ in range(20):
    h, c = torch.zeros(16, 12), torch.zeros(16, 12)  # -
    h, c = torch.zeros(16, 12).unsqueeze(0), torch.zeros(16, 12).unsqueeze(0)  # +
    out, _ = rnn(x, (h, c))
    loss = nn.functional.mse_loss(head(out[:, -1]), x.mean(1)[:, :1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
