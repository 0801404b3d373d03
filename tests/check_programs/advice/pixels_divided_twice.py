# expect: GI343
# why: lies between 0 and 0.969 already, with values in between
# advice: Leave out the division at pixels_divided_twice.py:27, or the one before it.
# lines: divided=27 layer=29
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Pictures(Dataset):
    """Bytes, between 0 and 1."""

    def __init__(self) -> None:
        self.labels = torch.arange(80) % 2
        self.pixels = torch.randint(0, 128, (80, 64)) + 120 * self.labels[:, None]

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.pixels[index].float().div(255), self.labels[index]


def loss_of(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x = x / 255  # -

    return nn.functional.cross_entropy(model(x), y)


model = nn.Linear(64, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
history = []
for _ in range(4):
    for x, y in DataLoader(Pictures(), batch_size=16):
        loss = loss_of(x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
print("loss", history[0], history[-1])
