"""Bytes held for backward, equal to the byte with an independent count: pack hooks around the same program."""

from collections.abc import Callable

import pytest
import torch
from memory_programs import PROGRAMS, checkpointed, gpt2, mlp

from gradinspect.analyses.memory.held import Memory, measure_memory
from gradinspect.analyses.memory.rows import rows_by_line, rows_by_operator, rows_by_storage
from gradinspect.analyses.memory.tree import ModuleBytes, module_tree
from gradinspect.graph import Graph
from gradinspect.recording.capture import capture_graph
from gradinspect.recording.recorder import Recorder

Program = Callable[[], torch.Tensor]


def storages_in(value: object) -> dict[int, int]:
    """Map each storage within a tensor or a container to its bytes."""
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided:
            return storages_in((value._indices(), value._values()))
        storage = value.untyped_storage()
        return {storage._cdata: storage.nbytes()}
    parts = value if isinstance(value, tuple | list) else ()
    return {key: num_bytes for part in parts for key, num_bytes in storages_in(part).items()}


def seen_by_hooks(program: Program, pack: Callable[[torch.Tensor], object] = torch.Tensor.detach) -> list[int]:
    """Run a program with hooks that keep everything it saves, and return the bytes of each storage, sorted."""
    kept = []

    def keep(tensor: torch.Tensor) -> object:
        kept.append(pack(tensor))
        return kept[-1]

    torch.manual_seed(0)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda packed: packed):
        loss = program()
    assert loss.requires_grad
    return sorted({key: size for packed in kept for key, size in storages_in(packed).items()}.values())


def measured(program: Program) -> tuple[Graph, Memory]:
    """Run a program as it is, and measure its graph."""
    torch.manual_seed(0)
    with Recorder() as recorder:
        loss = program()
    graph = capture_graph(loss, recorder=recorder)
    return graph, measure_memory(graph)


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_every_byte_is_there_once(program: Program) -> None:
    """The same storages as the hooks saw, of the same sizes."""
    _, memory = measured(program)

    assert sorted(held.num_bytes for held in memory.storages) == seen_by_hooks(program)


def test_what_hooks_packed_is_what_counts() -> None:
    """A copy in half precision, and a copy elsewhere that keeps the device beside it, are held; the original is not."""
    for pack in (lambda t: t.to(torch.bfloat16, copy=True), lambda t: (t.device, t.clone())):
        torch.manual_seed(0)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda packed: packed):
            loss = mlp()
        memory = measure_memory(capture_graph(loss))

        assert sorted(held.num_bytes for held in memory.storages) == seen_by_hooks(mlp, pack)
        assert memory.bytes_by_kind["packed"] == memory.total_bytes > 0


def test_save_on_cpu() -> None:
    """Torch's own offloading."""
    hooks = torch.autograd.graph.save_on_cpu()
    torch.manual_seed(0)
    with hooks:
        loss = gpt2()
    memory = measure_memory(capture_graph(loss))

    assert sorted(held.num_bytes for held in memory.storages) == seen_by_hooks(gpt2, hooks.pack_hook)


def test_a_checkpoint_holds_its_inputs_only() -> None:
    """What is computed again is told, and has no bytes."""
    _, memory = measured(checkpointed)

    assert memory.num_recomputed > 0
    assert memory.bytes_by_kind["checkpoint"] + memory.bytes_by_kind["input"] > 0
    assert all(size <= 4 * 64 * 16 for size in (held.num_bytes for held in memory.storages))


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_rows_of_every_grouping_add_up(program: Program) -> None:
    """To the bytes beyond parameters and buffers; kinds add up to all bytes."""
    graph, memory = measured(program)

    def own(tree: tuple[ModuleBytes, ...]) -> int:
        return sum(module.own_bytes + own(module.children) for module in tree)

    assert sum(memory.bytes_by_kind.values()) == memory.total_bytes == sum(held.num_bytes for held in memory.storages)
    for rows in (rows_by_operator, rows_by_line, rows_by_storage):
        assert sum(row.num_bytes for row in rows(graph, memory)) == memory.extra_bytes
    for folds in (False, True):
        tree = module_tree(graph, memory, folds=folds)
        assert own(tree) == sum(module.total_bytes for module in tree) == memory.extra_bytes


def test_tensors_inside_transforms_have_their_storage() -> None:
    """`torch.func.grad` and `vmap` wrap tensors; the memory is that of what is inside."""
    seen: list[Memory] = []

    def loss(weight: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        value = (x @ weight).tanh().sum()
        seen.append(measure_memory(capture_graph(value)))
        return value

    torch.func.grad(loss)(torch.randn(4, 4), torch.randn(8, 4))
    torch.func.vmap(torch.func.grad(loss), (None, 0))(torch.randn(4, 4), torch.randn(3, 8, 4))

    assert [memory.total_bytes for memory in seen] == [4 * (8 * 4 + 8 * 4), 4 * 3 * (8 * 4 + 8 * 4)]
