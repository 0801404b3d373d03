# expect: GI321
# why: each score is compared with a token that the model has been given already
# advice: At tokens_cut_at_the_wrong_end.py:21, leave out the last score instead of the first, and the first
# advice: label instead of the last: scores[:, :-1] and ids[:, 1:].
# lines: given=20 cut=21 loss=23
import torch
from torch import nn

torch.manual_seed(0)
SIZE = 12
embed, head = nn.Embedding(SIZE, 16), nn.Linear(16, SIZE)
rnn = nn.GRU(16, 16, batch_first=True)
parameters = [*embed.parameters(), *rnn.parameters(), *head.parameters()]
optimizer = torch.optim.Adam(parameters, lr=0.01)

history = []
for _ in range(10):
    start, by = torch.randint(SIZE, (8, 1)), torch.randint(1, 4, (8, 1))
    ids = (start + by * torch.arange(10)) % SIZE
    scores = head(rnn(embed(ids))[0])
    scores, labels = scores[:, 1:], ids[:, :-1]  # -
    scores, labels = scores[:, :-1], ids[:, 1:]  # +
    loss = nn.functional.cross_entropy(scores.reshape(-1, SIZE), labels.reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
