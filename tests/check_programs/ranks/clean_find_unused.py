"""A layer that only some ranks use, with find_unused_parameters."""

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
        if rank == 0:
            h = torch.relu(self.middle(h))
        return self.head(h)


model = DistributedDataParallel(Net(), find_unused_parameters=True)
for _ in range(2):
    loss = model(torch.randn(2, 4)).pow(2).mean()
    loss.backward()
dist.destroy_process_group()
