"""Models that two ranks share, recorded on each, beside what torch's own pack hooks see there; prints JSON.

A fork for each rank, and a process group of its own for each kind of model.
"""

import json
import os
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import distributed, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

from gradinspect.analyses.memory.saved_storages import IN_MEMORY_ANYWAY, origins_of_saved
from gradinspect.graph import Graph
from gradinspect.recording.capture import capture_graph
from gradinspect.recording.recorder import Recorder

RANKS = 2


class Net(nn.Module):
    """Two layers of which neither divides evenly among all ranks."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(7, 16), nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run."""
        y: torch.Tensor = self.down(torch.tanh(self.up(x)))
        return y


def _plain(net: nn.Module, _mesh: DeviceMesh) -> nn.Module:
    return net


def _replicated(net: nn.Module, _mesh: DeviceMesh) -> nn.Module:
    return DistributedDataParallel(net)


def _sharded(net: nn.Module, mesh: DeviceMesh) -> nn.Module:
    for layer in (net.up, net.down):
        fully_shard(layer, mesh=mesh)
    return fully_shard(net, mesh=mesh)


def _parallel(net: nn.Module, mesh: DeviceMesh) -> nn.Module:
    plan = {"up": ColwiseParallel(use_local_output=False), "down": RowwiseParallel()}
    return parallelize_module(net, mesh, plan)


KINDS: dict[str, Callable[[nn.Module, DeviceMesh], nn.Module]] = {
    "plain": _plain, "DistributedDataParallel": _replicated, "fully_shard": _sharded, "tensor parallel": _parallel,
}  # fmt: skip


def packed_storages(model: nn.Module, x: torch.Tensor) -> dict[int, int]:
    """Return the bytes that each storage which pack hooks see on this rank has when the forward pass has ended."""
    storages: dict[int, Any] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            mine = tensor.to_local() if isinstance(tensor, DTensor) else tensor
            mine = mine.wait() if hasattr(mine, "wait") else mine
        storages[mine.untyped_storage().data_ptr()] = mine.untyped_storage()
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = model(x).square().mean()
        weights = {part.untyped_storage().data_ptr() for parameter in model.parameters()
                   for part in [parameter.to_local() if isinstance(parameter, DTensor) else parameter]}  # fmt: skip
    held = {address: storage.nbytes() for address, storage in storages.items() if address not in weights}
    loss.backward()
    return held


def leaves_of(graph: Graph) -> dict[str, Any]:
    """Return the shapes of each leaf: over all ranks, and on this one."""
    leaves = [node.leaf for node in graph.nodes if node.leaf is not None]
    return {str(leaf.name): [leaf.info.shape, leaf.info.local_shape] for leaf in leaves}


def recorded(kind: str, mesh: DeviceMesh) -> dict[str, Any]:
    """Record one kind of model."""
    torch.manual_seed(0)
    net = Net()
    names = [name for name, _ in net.named_parameters()]
    model = KINDS[kind](net, mesh)
    x = torch.randn(6, 7)
    packed = packed_storages(model, x)
    with Recorder() as recorder:
        loss = model(x).square().mean()
        graph = capture_graph(loss, model=model, recorder=recorder)
    origins = origins_of_saved(graph)
    saved = [value for node in graph.nodes for value in node.saved if value.tensor is not None]
    held = [graph.storages[number].num_bytes for number, origin in origins.items() if origin not in IN_MEMORY_ANYWAY]
    loss.backward()
    return {
        "names": names,
        "leaves": leaves_of(graph),
        "held": sum(held),
        "packed": sum(packed.values()),
        "modules": sorted({call.path for call in graph.modules}),
        "saved": [[value.tensor.info.shape, value.tensor.info.local_shape, value.tensor.num_bytes]
                  for value in saved if value.tensor is not None and value.tensor.info.local_shape is not None],
        "outputs": [[node.name, info.shape, info.local_shape] for node in graph.nodes if node.leaf is None
                    for info in node.forward_outputs if info is not None and info.local_shape is not None],
        "shard": {name: list((one.to_local() if isinstance(one, DTensor) else one).shape)
                  for name, one in net.named_parameters()},
        "warnings": graph.warnings,
    }  # fmt: skip


def run_rank(rank: int, folder: Path) -> None:
    """Record each kind on one rank, and write what was recorded."""
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=RANKS)
    mesh = init_device_mesh("cpu", (RANKS,))
    found = {kind: recorded(kind, mesh) for kind in KINDS}
    (folder / f"{rank}.json").write_text(json.dumps(found))
    distributed.destroy_process_group()


def main() -> None:
    """Run both ranks."""
    os.environ |= {"OMP_NUM_THREADS": "1", "MASTER_ADDR": "localhost", "GLOO_SOCKET_IFNAME": "lo"}
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pids = []
        for rank in range(RANKS):
            pid = os.fork()
            if not pid:
                try:
                    run_rank(rank, folder)
                    os._exit(0)
                except BaseException:
                    traceback.print_exc()
                    os._exit(1)
            pids.append(pid)
        codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
        if any(codes):
            raise SystemExit(f"ranks ended with {codes}")
        print(json.dumps([json.loads((folder / f"{rank}.json").read_text()) for rank in range(RANKS)]))


if __name__ == "__main__":
    main()
