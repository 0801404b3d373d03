# expect: GI001
# advice: Bring the samples of a batch to one shape: pad or cut them, in the dataset or in the DataLoader's collate_fn.
"""Clips have the lengths that they were recorded with."""

import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
clips = [(torch.randn(1, 40 + 3 * number) + number % 2, number % 2) for number in range(24)]


def cut(batch):
    shortest = min(clip.shape[1] for clip, _ in batch)
    return torch.stack([clip[:, :shortest] for clip, _ in batch]), torch.tensor([label for _, label in batch])


loader = DataLoader(clips, batch_size=6, shuffle=True)  # -
loader = DataLoader(clips, batch_size=6, shuffle=True, collate_fn=cut)  # +
net = nn.Sequential(nn.Conv1d(1, 4, 5), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(4, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
history = []
for _ in range(6):
    for clip, label in loader:
        loss = nn.functional.cross_entropy(net(clip), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
print("loss", history[0], history[-1])
