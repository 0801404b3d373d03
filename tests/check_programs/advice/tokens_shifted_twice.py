# expect: GI321
# why: each score is compared with the token after the next one, as the labels are shifted 2 times
# advice: Shift once: leave out the shift at tokens_shifted_twice.py:18, or that of the labels that are passed to it.
# lines: given=27 loss=18
import torch
from torch import nn

torch.manual_seed(0)
SIZE = 12
embed, head = nn.Embedding(SIZE, 16), nn.Linear(16, SIZE)
rnn = nn.GRU(16, 16, batch_first=True)
parameters = [*embed.parameters(), *rnn.parameters(), *head.parameters()]
optimizer = torch.optim.Adam(parameters, lr=0.01)


def token_loss(scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Compare scores with labels that the data have shifted."""
    return nn.functional.cross_entropy(scores[:, :-1].reshape(-1, SIZE), labels[:, 1:].reshape(-1))  # -
    return nn.functional.cross_entropy(scores.reshape(-1, SIZE), labels.reshape(-1))  # +


history = []
for _ in range(10):
    start, by = torch.randint(SIZE, (8, 1)), torch.randint(1, 4, (8, 1))
    ids = (start + by * torch.arange(10)) % SIZE
    given, labels = ids[:, :-1], ids[:, 1:]
    loss = token_loss(head(rnn(embed(given))[0]), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
