"""One rank skips a layer."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.middle, self.head = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 1)

    def forward(self, x):
        h = torch.relu(self.body(x))
        if rank == 0:  # -
            h = torch.relu(self.middle(h))  # -
        h = torch.relu(self.middle(h))  # +
        return self.head(h)


model = DistributedDataParallel(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, losses = torch.randn(16, 4), []
for _ in range(8):
    loss = (model(x) - x[:, :1]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
dist.destroy_process_group()
# expect: GI901 rank0=21 backward=32
# advice: Run the same layers on every rank at unused_on_one.py:21, or pass find_unused_parameters=True to
# advice: DistributedDataParallel.
