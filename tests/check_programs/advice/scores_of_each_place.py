# expect: GI001
# advice: The second dimension of the scores must be that of the classes, and is as long as a row of the target: at
# advice: scores_of_each_place.py:32, pass scores.transpose(1, 2), or flatten(0, 1) of both.
import torch
from torch import nn


class Tagger(nn.Module):
    """A class for each word."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(9, 8)
        self.rnn = nn.GRU(8, 8, batch_first=True)
        self.out = nn.Linear(8, 5)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.out(self.rnn(self.embed(words))[0])


torch.manual_seed(0)
tagger = Tagger()
words = torch.randint(9, (16, 7))
tags = words % 5
optimizer = torch.optim.Adam(tagger.parameters(), lr=0.05)
history = []
for _ in range(20):
    optimizer.zero_grad()
    scores = tagger(words)

    # each place has a tag
    loss = nn.functional.cross_entropy(scores, tags)  # -
    loss = nn.functional.cross_entropy(scores.transpose(1, 2), tags)  # +
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
