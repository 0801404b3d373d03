# expect: GI330
# why: The GRU at next_token_of_both_ways.py:15 reads in both directions
# advice: Make the GRU that is called at next_token_of_both_ways.py:15 without bidirectional=True.
# lines: given=15 loss=16
import torch
from torch import nn

torch.manual_seed(0)
embed, history = nn.Embedding(12, 16), []
rnn, head = nn.GRU(16, 8, batch_first=True, bidirectional=True), nn.Linear(16, 12)  # -
rnn, head = nn.GRU(16, 16, batch_first=True), nn.Linear(16, 12)  # +
optimizer = torch.optim.Adam([*embed.parameters(), *rnn.parameters(), *head.parameters()], lr=0.01)
for _ in range(12):
    ids = (torch.randint(12, (8, 1)) + torch.arange(10)) % 12
    scores = head(rnn(embed(ids[:, :-1]))[0])
    loss = nn.functional.cross_entropy(scores.flatten(0, 1), ids[:, 1:].flatten())
    history.append(loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", history[0], history[-1])
