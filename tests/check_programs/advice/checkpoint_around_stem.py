# expect: GI301
# advice: Use use_reentrant=False at checkpoint_around_stem.py:28
# lines: detached=28
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Stem(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 6), nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.tanh(self.first(x))
        return torch.tanh(self.second(hidden))


torch.manual_seed(0)
stem, head = Stem(), nn.Linear(6, 1)
optimizer = torch.optim.Adam([*stem.parameters(), *head.parameters()], lr=0.01)
x = torch.randn(16, 4)
y = x.sum(1, keepdim=True)
history = []


def predicted() -> torch.Tensor:
    hidden = checkpoint(stem, x, use_reentrant=True)  # -
    hidden = checkpoint(stem, x, use_reentrant=False)  # +
    return head(hidden)


for _ in range(10):
    loss = nn.functional.mse_loss(predicted(), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
