"""A classifier reads [time, batch, features], and averages over time."""

import torch
from torch import nn

torch.manual_seed(0)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(8, 16, bidirectional=True)
        self.head = nn.Linear(32, 1)

    def forward(self, x):
        out, _ = self.rnn(x)
        return self.head(out.mean(dim=0))


model, history = Tagger(), []
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
x = torch.randn(6, 32, 8)
y = x.mean(0)[:, :1]
for _ in range(4):
    loss = (model(x) - y).square().mean()
    history.append(loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", history[0], history[-1])
