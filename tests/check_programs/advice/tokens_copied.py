# expect: GI321
# why: so it learns to copy
# advice: At tokens_copied.py:33, compare scores[:, :-1] with ids[:, 1:].
import torch
from torch import nn


class Words(nn.Module):
    """A language model."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 16)
        self.rnn = nn.GRU(16, 32, batch_first=True)
        self.head = nn.Linear(32, 20)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Score the next token at each place."""
        states, _ = self.rnn(self.embed(ids))
        return self.head(states)


torch.manual_seed(0)
model = Words()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
losses = []
for _ in range(12):
    ids = (torch.randint(20, (8, 1)) + 3 * torch.arange(12)) % 20
    scores = model(ids)
    labels = ids  # -
    scores, labels = scores[:, :-1], ids[:, 1:]  # +
    scores = scores.reshape(-1, 20)
    loss = nn.functional.cross_entropy(scores, labels.reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
