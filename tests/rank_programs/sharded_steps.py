"""Three steps of a model that ranks share; the first argument says how, the second names the backend."""

import sys
from pathlib import Path

import torch
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel

kind, backend = sys.argv[1:]
if backend == "shared_memory":
    sys.path.insert(0, str(Path(__file__).parent.parent))
    import shared_memory_group  # noqa: F401
distributed.init_process_group(backend)
torch.manual_seed(0)


class Block(nn.Module):
    """Two layers beside a shortcut."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(24, 96), nn.Linear(96, 24)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run."""
        return x + self.down(nn.functional.gelu(self.up(x)))


def shared(net: nn.Sequential) -> nn.Module:
    """Share a model among ranks."""
    if kind in ("ddp", "unused"):
        return DistributedDataParallel(
            net, find_unused_parameters=kind == "unused", gradient_as_bucket_view=kind == "unused"
        )
    mesh = init_device_mesh("cpu", (distributed.get_world_size(),))
    if kind == "parallel":
        from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

        plan = {f"{n}.{name}": style() for n in range(len(net))
                for name, style in (("up", ColwiseParallel), ("down", RowwiseParallel))}  # fmt: skip
        return parallelize_module(net, mesh, plan)
    from torch.distributed.fsdp import fully_shard

    for block in net:
        fully_shard(block, mesh=mesh, reshard_after_forward=kind != "kept")
    return fully_shard(net, mesh=mesh, reshard_after_forward=kind != "kept")


model = shared(nn.Sequential(*(Block() for _ in range(3))))
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    loss = model(torch.randn(8, 24)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
