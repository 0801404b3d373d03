"""Events among silence, which is a token like the others and stands anywhere in its rows."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
# a signal of events: 0 is silence, and is to be predicted; the next token
emb, rnn, head = nn.Embedding(8, 16), nn.GRU(16, 32, batch_first=True), nn.Linear(32, 8)
params = [*emb.parameters(), *rnn.parameters(), *head.parameters()]
opt = torch.optim.Adam(params, 1e-2)
for _ in range(30):
    ids = torch.randint(1, 8, (16, 25)) * (torch.rand(16, 25) < 0.3)
    loss = F.cross_entropy(head(rnn(emb(ids[:, :-1]))[0]).flatten(0, 1), ids[:, 1:].flatten())
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
