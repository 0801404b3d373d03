"""The note on what torch.compile did, below a tree."""

import pytest
from factories import graph, op
from inline_snapshot import snapshot
from msgspec.structs import replace

from gradinspect.graph import Compilation, Frame, Graph, GraphBreak, Recompile
from gradinspect.renderers.terminal.compilation import CompilationPage


def _compiled(**fields: object) -> Graph:
    done = Compilation(num_graphs=3, **fields)  # type: ignore[arg-type]
    lines = tuple(Frame(file="models/net.py", line=line) for line in range(8, 20))
    return replace(graph(op("SinBackward0")), frames=lines, compilation=done)


def _said(of: Graph, **options: int | None) -> str:
    page = CompilationPage(width=80)
    return "".join(f"{line.plain}\n" for line in page.lines(of, **options))


def test_a_note_names_lines_and_reasons() -> None:
    """Recompiles of one function are one row, with the last reason."""
    breaks = (
        GraphBreak(reason="Failed to trace builtin operator", frame=4, count=2),
        GraphBreak(reason="Dynamic shape operator", frame=2, is_skipped=True),
    )
    again = [Recompile(function="forward", reason=f"name == '{name}'", frame=0) for name in "abc"]
    found = _compiled(breaks=breaks, recompiles=(*again, Recompile(function="f", reason="L['x'] == 2", gives_up=True)))

    assert _said(found) == snapshot("""\

torch.compile so far: 3 graphs, 3 graph breaks, 3 recompiles (--eager: none)
  break  net.py:12  ×2  Failed to trace builtin operator
  break  net.py:10  Dynamic shape operator, so its function is not compiled
  again  f: L['x'] == 2; too often, so what is new runs in eager
  again  net.py:8  ×3  forward: name == 'c'
""")


def test_what_is_compiled_without_effect_is_one_row() -> None:
    """Modules of equal blocks are named together, and the outermost one as elsewhere."""
    assert _said(_compiled(uncompiled=("blocks.0", "blocks.1", "blocks.2"))) == snapshot("""\

torch.compile so far: 3 graphs, 0 graph breaks, 0 recompiles (--eager: none)
  eager  blocks.0-2: .compile() compiles no code of torch.nn itself,
    torch.compile(module) does
""")
    assert "  eager  model: .compile()" in _said(_compiled(uncompiled=("",)))


def test_a_long_note_is_cut() -> None:
    """To a few lines of each kind, and what is left is counted; all of it is shown where that is asked for."""
    breaks = tuple(GraphBreak(reason=f"reason {number}", frame=number) for number in range(10))
    found = _compiled(breaks=breaks)

    assert _said(found).endswith("  and 6 more: --full\n")
    assert len(_said(found, max_rows=None).splitlines()) == 12


def test_what_torch_forgot_is_not_counted_as_none() -> None:
    """TorchDynamo keeps figures of its last compilations only."""
    assert "0 graph breaks, at least 0 recompiles" in _said(_compiled(is_cut=True))


@pytest.mark.parametrize("done", [None, Compilation(num_graphs=1)])
def test_there_is_no_note_without_compilation(done: Compilation | None) -> None:
    """One that compiled a graph without a break is one line."""
    found = replace(graph(op("SinBackward0")), compilation=done)

    assert len(_said(found).splitlines()) == (0 if done is None else 2)
