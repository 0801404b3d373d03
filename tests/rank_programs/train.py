"""A model that is trained on several ranks; the words of the command line say what the last rank does differently."""

import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
is_last = rank == dist.get_world_size() - 1
torch.manual_seed(0)
modes = sys.argv[1:]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.extra = nn.Linear(8, 8)

    def forward(self, x):
        h = self.body(x).relu()
        return h if is_last and "skips" in modes else h + self.extra(h)


net = Net()
model = DistributedDataParallel(net) if "ddp" in modes else net
if is_last:
    if "sleeps" in modes:
        time.sleep(1000)
    if "waits" in modes:
        dist.barrier()
    if "raises" in modes:
        raise ValueError("bad data")
    if "is-killed" in modes:
        os.kill(os.getpid(), 9)
    if "ends" in modes:
        sys.exit(0)
if rank == 0 and "first-waits" in modes:
    dist.all_reduce(torch.ones(1))
try:
    for _ in range(3):
        h = model(torch.randn(2, 8))
        if is_last and "nan" in modes:
            h = (h - 10).sqrt()
        h.sum().backward()
    print(f"rank {rank} has trained")
finally:
    if "stays" not in modes:  # otherwise what waits for this rank fails at once
        dist.destroy_process_group()
