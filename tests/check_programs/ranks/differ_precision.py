"""Autocast on one rank."""

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
        h = self.middle(h)
        return self.head(h)


model = DistributedDataParallel(Net())
with torch.autocast("cpu", dtype=torch.bfloat16, enabled=rank == 1):
    out = model(torch.randn(2, 4))
loss = out.float().pow(2).mean()
loss.backward()
dist.destroy_process_group()
# expect: GI902 rank1=19 backward=28
