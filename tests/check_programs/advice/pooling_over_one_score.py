# expect: GI601
# advice: dimension 1 (of length 5)
# never: binary_cross_entropy
# never: classes
# lines: zeroed=22
import torch
from torch import nn


class Pooling(nn.Module):
    """Weighs the words of a sentence by one score each."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.score = nn.Embedding(12, 6), nn.Linear(6, 1)
        self.out = nn.Linear(6, 3)

    def forward(self, sentence: torch.Tensor) -> torch.Tensor:
        words = torch.tanh(self.words(sentence))
        score = self.score(words)
        weight = torch.softmax(score, dim=1)  # +
        weight = torch.softmax(score, dim=2)  # -
        return self.out(torch.einsum("bto,btd->bd", weight, words))


torch.manual_seed(0)
model = Pooling()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
sentences = torch.randint(0, 12, (8, 5))
history = []
for _ in range(10):
    loss = nn.functional.cross_entropy(model(sentences), sentences[:, 0] % 3)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
