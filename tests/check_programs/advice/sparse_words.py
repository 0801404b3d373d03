# expect: GI001
# why: words.weight is float32 [20, 4], and its gradient is sparse, made at sparse_words.py:16.
# advice: Remove sparse=True at sparse_words.py:16. Or pass these parameters to torch.optim.SparseAdam
# lines: sparse=16 optimizer=31 failed=40
import torch
from torch import nn

torch.manual_seed(0)


class Scorer(nn.Module):
    """Scores the mean of words."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(20, 4, sparse=True)  # -
        self.words = nn.Embedding(20, 4)  # +
        self.head = nn.Linear(4, 1)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return one score for each text."""
        return self.head(self.words(ids).mean(1)).squeeze(1)


class Training:
    """Goes through texts."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model

        self.optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
        self.ids = torch.randint(20, (64, 5))
        self.wanted = (self.ids < 8).float().mean(1)

    def step(self) -> float:
        """Take a step."""
        loss = (self.model(self.ids) - self.wanted).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


training = Training(Scorer())
history = [training.step() for _ in range(10)]
print("loss", history[0], history[-1])
