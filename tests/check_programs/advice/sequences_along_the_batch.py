# expect: GI710
# why: sequences_along_the_batch.py:28 has put 16 examples together along axis 0.
# advice: Make the LSTM that is called at sequences_along_the_batch.py:18 with batch_first=True.
# lines: batch=28 ran=18
import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(9, 8)
        self.rnn = nn.LSTM(8, 16)  # -
        self.rnn = nn.LSTM(8, 16, batch_first=True)  # +
        self.head = nn.Linear(16, 2)

    def forward(self, ids):
        return self.head(self.rnn(self.words(ids))[0])


torch.manual_seed(0)
ids = torch.randint(9, (64, 10))
tags = (ids.roll(1, 1) > 4).long()
model, history = Tagger(), []
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for _ in range(20):
    rows = torch.randperm(64)[:16]
    scores = model(ids[rows])
    loss = nn.functional.cross_entropy(scores.flatten(0, 1), tags[rows].flatten())
    history.append(loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", history[0], history[-1])
