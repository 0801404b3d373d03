"""Each rank has a batch of one kind, and a head for each kind."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.heads = nn.ModuleDict({"image": nn.Linear(4, 1), "text": nn.Linear(4, 1)})

    def forward(self, x, kind):
        return self.heads[kind](torch.relu(self.body(x)))


model = DistributedDataParallel(TwoHeads())
batch, kind = torch.randn(2, 4), ("image", "text")[rank]
loss = model(batch, kind).mean()
loss.backward()
dist.destroy_process_group()
# expect: GI901 rank1=20 rank0=20 backward=26
# expect: GI901 rank0=20 rank1=20 backward=26
