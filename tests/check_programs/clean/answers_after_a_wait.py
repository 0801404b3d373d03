"""Blanks fill the wait before an answer: they are more than half of the labels, and stand in the middle."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
# copy task with delay: blank 0 fills the wait, part of the task; the answer comes at the end
V, L, WAIT = 9, 5, 10
emb, rnn, head = nn.Embedding(V + 1, 16), nn.LSTM(16, 32, batch_first=True), nn.Linear(32, V)
params = [*emb.parameters(), *rnn.parameters(), *head.parameters()]
opt = torch.optim.RMSprop(params, 1e-3)
for _ in range(30):
    s = torch.randint(1, V, (16, L))
    blank = torch.zeros(16, WAIT, dtype=torch.long)
    x = torch.cat([s, blank[:, :-1], torch.full((16, 1), V), blank[:, :L]], 1)
    y = torch.cat([blank, torch.zeros(16, L, dtype=torch.long), s], 1)
    logits = head(rnn(emb(x))[0])
    loss = F.cross_entropy(logits.transpose(1, 2), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
