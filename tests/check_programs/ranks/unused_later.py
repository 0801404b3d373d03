"""Layers are dropped at random, and each rank draws for itself; the second step parts them."""

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
        if not drop:
            h = torch.relu(self.middle(h))
        return self.head(h)


model = DistributedDataParallel(Net())
for step in range(2):
    drop = step + rank == 2
    loss = model(torch.randn(2, 4)).pow(2).mean()
    loss.backward()
dist.destroy_process_group()
# expect: GI901 rank0=21 backward=29
