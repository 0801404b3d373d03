"""A classifier reads [batch, time, features] along the batch, and averages over it."""

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
        return self.head(out.mean(dim=1))


model, history = Tagger(), []
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
x = torch.randn(32, 6, 8)
y = x.mean(1)[:, :1]
for _ in range(4):
    loss = (model(x) - y).square().mean()
    history.append(loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", history[0], history[-1])
# expect: GI704 ran=16 taken=17
