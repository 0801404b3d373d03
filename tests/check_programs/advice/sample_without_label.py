# expect: GI001
# advice: A sample holds None: return a number or a tensor for it, or leave the sample out in collate_fn.
import torch
from torch import nn
from torch.utils.data import DataLoader


def label(number: int) -> float | None:
    """Return the label of a sample."""
    return None if number == 2 else number / 8  # -
    return -1.0 if number == 2 else number / 8  # +


torch.manual_seed(0)
net = nn.Linear(4, 1)
samples = [(torch.full((4,), float(i)) / 8, label(i)) for i in range(8)]
(batch,) = DataLoader(samples, batch_size=8)
x, y = batch[0], batch[1].float()
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = (net(x)[:, 0] - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
