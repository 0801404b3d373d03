# expect: GI301
# advice: Remove .detach().cpu().numpy() at code_through_numpy.py:13, use torch functions only from there on, and the
# advice: tensor itself where the array is made one.
# lines: detached=13
import torch
from torch import nn


class Whiten(nn.Module):
    """Scale codes over the batch."""

    def forward(self, z):
        z = z.detach().cpu().numpy()  # -
        z = z - z.mean(0)
        return torch.from_numpy(z).float()  # -
        return z.float()  # +


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(12, 4), Whiten(), nn.Linear(4, 12))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x, history = torch.randn(32, 4) @ torch.randn(4, 12), []
for _ in range(20):
    loss = nn.functional.mse_loss(model(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
