"""Sequences of different lengths, accumulation under no_sync, a layer that only some ranks use and say so."""

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
        for _ in range(rank + 1):
            h = torch.relu(self.middle(h))
        return self.head(h)


model = DistributedDataParallel(Net())
with model.no_sync():
    model(torch.randn(2, 4)).mean().backward()
model(torch.randn(2, 4)).mean().backward()
dist.destroy_process_group()
