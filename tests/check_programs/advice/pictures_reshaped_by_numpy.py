# expect: GI702
# why: values that are 3 places apart are more alike than neighbors, along the rows and down the columns
# advice: Move the channels where the images get this shape, at pictures_reshaped_by_numpy.py:15: by transpose(2, 0, 1)
# lines: viewed=15 convolved=28
import numpy as np
import torch
from torch import nn


def load(kind: int) -> torch.Tensor:
    """Make a picture of [rows, columns, channels], and bring its channels to the front."""
    picture = np.full((20, 24, 3), 0.2, dtype=np.float32)
    top, left = rng.integers(2, 10), rng.integers(2, 12)
    picture[top : top + 8, left : left + 8, kind] += 0.7
    picture = picture.reshape(3, 20, 24)  # -
    picture = picture.transpose(2, 0, 1)  # +
    return torch.from_numpy(picture + rng.normal(0, 0.05, picture.shape).astype(np.float32))


rng = np.random.default_rng(0)
torch.manual_seed(0)
body = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveMaxPool2d(1), nn.Flatten())
model, history = nn.Sequential(body, nn.Linear(8, 3)), []
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for _ in range(12):
    kinds = [int(kind) for kind in rng.integers(3, size=32)]
    images = torch.stack([load(kind) for kind in kinds])
    loss = nn.functional.cross_entropy(model(images), torch.tensor(kinds))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
