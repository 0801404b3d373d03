"""A pipeline with a stage on each rank: no stage reaches its backward before that of the next one has run."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

dist.init_process_group("gloo")
rank, num_ranks = dist.get_rank(), dist.get_world_size()
torch.manual_seed(rank)
torch.use_deterministic_algorithms(True)  # memory that nobody has written is NaN
part = nn.Sequential(nn.Linear(8, 8), nn.Tanh())
stage = PipelineStage(part, rank, num_ranks, torch.device("cpu"))
schedule = ScheduleGPipe(stage, n_microbatches=2, loss_fn=nn.functional.mse_loss)
inputs = [torch.randn(4, 8)] if rank == 0 else []
target = {"target": torch.zeros(4, 8), "losses": []} if rank == num_ranks - 1 else {}
for _ in range(2):
    schedule.step(*inputs, **target)
