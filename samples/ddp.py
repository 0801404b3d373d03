"""Data-parallel training with one gloo process: the graph is the model's own, and averaging happens in hooks.

Try: gradinspect trace samples/ddp.py
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main():
    torch.manual_seed(0)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        model = DistributedDataParallel(nn.Sequential(nn.Linear(10, 10), nn.ReLU(), nn.Linear(10, 5)))
        loss = (model(torch.randn(20, 10)) - torch.randn(20, 5)).square().mean()
        loss.backward()
        print(f"loss {loss.item():.4f}")
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
