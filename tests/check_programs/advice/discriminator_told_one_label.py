# expect: GI320
# why: there is nothing to tell apart
# advice: give what the generator makes another label than real examples have at discriminator_told_one_label.py:23
# lines: loss=26 loss=23
import torch
from torch import nn

torch.manual_seed(0)
maker = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
judge = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1), nn.Sigmoid())
first = torch.optim.Adam(judge.parameters(), lr=0.02)
second = torch.optim.Adam(maker.parameters(), lr=0.005)
criterion, history = nn.BCELoss(), []


def label(value: float) -> torch.Tensor:
    """Return labels of one value."""
    return torch.full((32,), value)


for _ in range(60):
    judge.zero_grad()
    criterion(judge(torch.randn(32, 2) + 3).view(-1), label(1.0)).backward()
    fake = maker(torch.randn(32, 4))

    criterion(judge(fake.detach()).view(-1), label(1.0)).backward()  # -
    criterion(judge(fake.detach()).view(-1), label(0.0)).backward()  # +
    first.step()
    maker.zero_grad()
    criterion(judge(fake).view(-1), label(1.0)).backward()
    second.step()
    history.append((fake.mean(0) - 3).norm().item())
print("loss", history[0], history[-1])
