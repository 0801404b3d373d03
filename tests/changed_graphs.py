"""Graphs of some equal blocks, made by hand, that differ in one respect."""

from factories import graph as made
from factories import leaf, op, saved

from gradinspect.graph import Frame, Graph, ModuleCall, Node, Storage

HOSTILE = "</script><img src=x onerror=document.title='broken'>\u202e\udcff"


def block_graph(blocks: int, *, name: str = "h", extra: str | None = None, frozen: bool = False) -> Graph:
    """Build a sum over blocks of a product with a weight and a tanh.

    Args:
        blocks: How many.
        name: The path of their list.
        extra: An operator at the end of each.
        frozen: Whether the weight of the first block requires no gradient.
    """
    inner: list[tuple[str, int]] = []  # operator, block
    for block in reversed(range(blocks)):
        inner += [(one, block) for one in (extra, "TanhBackward0", "MulBackward0") if one is not None]
    leaves = [block for block in range(blocks) if not (frozen and block == 0)]
    places = {block: 1 + len(inner) + place for place, block in enumerate(leaves)}
    nodes: list[Node] = [op("SumBackward0", 1, shape=())]
    for place, (operator, block) in enumerate(inner, start=1):
        after = place + 1 if place < len(inner) else None
        edges = (after, places.get(block)) if operator == "MulBackward0" else (after,)
        kept = (saved("_saved_self", 2, 3, storage=block),) if operator == "MulBackward0" else ()
        nodes.append(op(operator, *edges, module=1 + block, frame=0, saved=kept))
    calls = [ModuleCall(path=f"{name}.{block}", class_name="Block", parent=0) for block in range(blocks)]
    return made(
        *nodes, *(leaf(f"{name}.{block}.weight", 3) for block in leaves),
        modules=(ModuleCall(path="", class_name="Net"), *calls),
        frames=(Frame(file="train.py", line=9, code="y = torch.tanh(w * x)"),),
        storages=tuple(Storage(num_bytes=24, origin="activation") for _ in range(blocks)),
        arguments={"MulBackward0": ("self", "other")},
    )  # fmt: skip
