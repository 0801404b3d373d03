# expect: GI346
# why: flip, turn or shift inputs and targets, each by a draw of its own: in 8 of 8 batches
# advice: Draw once for both at masks_turned_apart.py:27 and masks_turned_apart.py:28: put image and mask into one
# lines: turned=27 turned=28 loss=38
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def augment(x: torch.Tensor) -> torch.Tensor:
    """Flip at random."""
    x = x.flip(-1) if torch.rand(1) < 0.5 else x
    return torch.rot90(x, int(torch.randint(4, (1,))), (-2, -1))


class Blobs(Dataset):
    """Images and masks."""

    images = torch.rand(64, 1, 12, 12)

    def __len__(self) -> int:
        return 64

    def __getitem__(self, place: int) -> tuple[torch.Tensor, torch.Tensor]:
        image = self.images[place]
        mask = (image > 0.5).float()
        image = augment(image)  # -
        mask = augment(mask)  # -
        image, mask = augment(torch.cat([image, mask])).split(1)  # +
        return image, mask


torch.manual_seed(0)
model, history = nn.Conv2d(1, 1, 3, padding=1), []
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
for image, mask in DataLoader(Blobs(), batch_size=8):
    loss = criterion(model(image), mask)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
