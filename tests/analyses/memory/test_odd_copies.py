"""The copy of a repeated block that holds much more, or less, than the others."""

from factories import graph, leaf, op, saved

from gradinspect.analyses.memory.odd_copies import OddCopies
from gradinspect.analyses.memory.saved_storages import held_bytes_by_node
from gradinspect.analyses.structure.folding import Scope, fold_graph
from gradinspect.graph import Graph, ModuleCall, Storage


def words(drawn: Graph) -> str:
    """Return what is said of the first repeat."""
    repeat = next(item for item in fold_graph(drawn).items if isinstance(item, Scope) and item.copies)
    return OddCopies(drawn, held_bytes_by_node(drawn)).words(repeat)


def blocks(*sizes: int, modules: tuple[ModuleCall, ...], in_a_block: int = 1) -> Graph:
    """Make blocks of two nodes in each of their modules, the first of which saves some elements."""
    nodes = [
        op(name, 2 * place + at + 1, module=place, saved=() if at else (saved("_saved_self", size, storage=place),))
        for place, size in enumerate(sizes)
        for at, name in enumerate((f"Mul{place % in_a_block}Backward0", f"Exp{place % in_a_block}Backward0"))
    ]
    storages = tuple(Storage(num_bytes=4 * size) for size in sizes)
    return graph(*nodes, leaf("w", 3), modules=modules, storages=storages)


def test_a_block_is_named_by_its_module() -> None:
    """With how many times the others it is; several alike are not said to be odd."""
    modules = tuple(ModuleCall(path=f"h.{block}", class_name="Block") for block in range(7))

    assert words(blocks(8, 8, 8, 80, 8, 8, 8, modules=modules)) == "h.3: 10.0 times the others' bytes"
    assert words(blocks(8, 9, 8, 7, 8, 8, 8, modules=modules)) == ""


def test_a_step_of_a_loop_is_named_by_the_number_of_its_calls() -> None:
    """All modules in it are called again in each."""
    modules = tuple(
        ModuleCall(path=path, class_name=path, call=call) for call in range(7, 0, -1) for path in ("out", "cell")
    )
    sizes = (*(1, 1) * 3, 1, 64, *(1, 1) * 3)

    assert words(blocks(*sizes, modules=modules, in_a_block=2)) == "call 4: 32.5 times the others' bytes"


def test_a_block_of_several_modules_is_named_by_its_place() -> None:
    """They are others in each, so no number says which."""
    modules = tuple(ModuleCall(path=f"{path}{block}", class_name=path) for block in range(7) for path in ("a", "b"))
    sizes = (*(1, 1) * 3, 1, 64, *(1, 1) * 3)

    assert words(blocks(*sizes, modules=modules, in_a_block=2)) == "copy 4: 32.5 times the others' bytes"
