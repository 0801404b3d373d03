"""Losses of several tasks, each weighed by a parameter that is added to it: all of them begin at zero."""

import torch
from torch import nn


class TaskLosses(nn.Module):
    """Weighs each loss by what it is expected to be."""

    def __init__(self, num_tasks: int) -> None:
        super().__init__()
        self.log_variances = nn.Parameter(torch.zeros(num_tasks))

    def forward(self, losses: list[torch.Tensor]) -> torch.Tensor:
        pairs = zip(self.log_variances, losses, strict=True)
        return sum(torch.exp(-log_variance) * loss + log_variance for log_variance, loss in pairs)


torch.manual_seed(0)
trunk, heads = nn.Sequential(nn.Linear(6, 16), nn.ReLU()), nn.ModuleList(nn.Linear(16, 1) for _ in range(2))
weigh = TaskLosses(2)
optimizer = torch.optim.Adam([*trunk.parameters(), *heads.parameters(), *weigh.parameters()], lr=1e-2)
data = torch.randn(64, 6)
targets = [3 * data[:, :1] + torch.randn(64, 1), 0.1 * data[:, 1:2]]
for _ in range(20):
    hidden = trunk(data)
    losses = [nn.functional.mse_loss(head(hidden), target) for head, target in zip(heads, targets, strict=True)]
    optimizer.zero_grad()
    weigh(losses).backward()
    optimizer.step()
