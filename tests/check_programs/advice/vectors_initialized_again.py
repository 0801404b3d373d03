# expect: GI384
# why: initializes the matrix that vectors_initialized_again.py:21 has set, and nothing has read it in between.
# advice: Let vectors_initialized_again.py:21 run after vectors_initialized_again.py:28.
# lines: set=21 init=28
import torch
from torch import nn

torch.manual_seed(0)
vectors = torch.randn(30, 8)


class Tagger(nn.Module):
    """Gives each word one of three tags."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(30, 8)
        self.tags = nn.Linear(8, 3)
        self.apply(self.start)  # +
        with torch.no_grad():
            self.words.weight.copy_(vectors)
        self.apply(self.start)  # -

    @staticmethod
    def start(module: nn.Module) -> None:
        """Initialize a layer."""
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=0.05)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return scores."""
        return self.tags(self.words(ids))


model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
ids, tags = torch.randint(30, (64,)), torch.randint(3, (64,))
losses = []
for _ in range(20):
    loss = nn.functional.cross_entropy(model(ids), tags)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
