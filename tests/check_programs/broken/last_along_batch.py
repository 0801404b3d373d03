"""A tagger reads [batch, time, features] along the batch."""

import torch
from torch import nn

torch.manual_seed(0)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(8, 16, num_layers=2)
        self.head = nn.Linear(16, 1)

    def forward(self, x):
        out, _ = self.rnn(x)
        return self.head(torch.relu(out)[:, x.size(1) - 1, :])


model, history = Tagger(), []
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
x = torch.randn(32, 6, 8)
y = x[:, -1, :1] + x[:, 0, :1]
for _ in range(4):
    loss = (model(x) - y).square().mean()
    history.append(loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", history[0], history[-1])
# expect: GI704 ran=16 taken=17
