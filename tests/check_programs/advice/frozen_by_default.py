# expect: GI379
# why: optimizer has a group that no step changes, of words.weight alone
# advice: pass freeze=False at frozen_by_default.py:14.
# lines: frozen=14 called=24 optimizer=26 step=34
import torch
from torch import nn

VECTORS = torch.arange(160.0).reshape(20, 8).cos()


class Intents(nn.Module):
    def __init__(self, vectors):
        super().__init__()
        self.words = nn.Embedding.from_pretrained(vectors)  # -
        self.words = nn.Embedding.from_pretrained(vectors, freeze=False)  # +
        self.out = nn.Linear(8, 3)

    def forward(self, ids):
        return self.out(self.words(ids).mean(1))


torch.manual_seed(0)
ids, labels = torch.randint(20, (32, 5)), torch.randint(3, (32,))
model = Intents(VECTORS)
groups = [{"params": model.words.parameters(), "lr": 0.01}, {"params": model.out.parameters()}]
optimizer = torch.optim.Adam(groups, lr=0.05)
history = []
for _ in range(8):
    loss = nn.functional.cross_entropy(model(ids), labels)
    if not history:
        history.append(loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
history.append(loss.item())
print("loss", history[0], history[-1])
