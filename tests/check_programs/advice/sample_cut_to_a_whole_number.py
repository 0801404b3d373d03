# expect: GI329
# why: and smooth_l1_loss compares the model with what is left
# advice: At sample_cut_to_a_whole_number.py:25, make them torch.float32.
# lines: cast=25
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Readings(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Readings, and what they mean, with mean 0 and deviation 1."""

    def __init__(self) -> None:
        self.x = torch.randn(80, 5)
        y = self.x.sum(1)
        self.y = (y - y.mean()) / y.std()

    def __len__(self) -> int:
        return 80

    def __getitem__(self, place: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return one pair."""
        return self.x[place], self.y[place].long()  # -
        return self.x[place], self.y[place].float()  # +


model = nn.Linear(5, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion, history = nn.SmoothL1Loss(), []
for _ in range(3):
    for x, y in DataLoader(Readings(), batch_size=16, shuffle=True):
        loss = criterion(model(x).squeeze(1), y.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
print("loss", history[0], history[-1])
