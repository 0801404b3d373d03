"""The page of `memory --compiled`."""

from gradinspect.analyses.memory.budgets import BudgetRow, BudgetTable, CompiledMemory, UnchangedRun
from gradinspect.renderers.terminal.memory.budgets import BudgetPage


def row(budget: float, kept: int, peak: int, again: int = 0, flops: int = 0) -> BudgetRow:
    """A row."""
    return BudgetRow(budget=budget, kept_bytes=kept, peak_bytes=peak, num_recomputed=again, recomputed_flops=flops)


def found(*rows: BudgetRow, current: float = 1.0, without: tuple[UnchangedRun, ...] = ()) -> CompiledMemory:
    """A comparison."""
    table = BudgetTable(
        source="train.py", call="backward #1 at train.py:9", backends=("aot_eager",), num_graphs=1, current=current,
        rows=rows, walked_bytes=rows[-1].kept_bytes,
    )  # fmt: skip
    return CompiledMemory(compiled=table, without=without)


def text(memory: CompiledMemory, width: int = 80) -> list[str]:
    """The lines of the page."""
    return [str(line) for line in BudgetPage(width=width).lines(memory)]


def test_equal_rows_are_one() -> None:
    """Budgets under which the graphs are the same stand together."""
    lines = text(found(row(0, 0, 4096, 9, 2_000_000), row(0.1, 1024, 2048), row(0.2, 1024, 2048), row(1, 2048, 2048)))

    assert any(line.startswith("budget 0  ") and line.endswith("9 operators, 2.0 M") for line in lines)
    assert any(line.startswith("budget 0.1-0.2 ") for line in lines)
    assert any(line.startswith("budget 1 ") for line in lines)


def test_what_is_not_known_is_said() -> None:
    """A size that is missing is no zero."""
    note = "The program checkpoints h.0-3 itself."
    without = (UnchangedRun(what="eager", kept_bytes=100, problem="It reads values.", note=note),)
    lines = text(found(row(1, 2048, 2048), without=without))

    assert any(line.startswith("eager") and line.split() == ["eager", "100", "B", "?"] for line in lines)
    assert [note, "Not known of eager: It reads values."] == lines[-2:]


def test_no_line_is_too_wide() -> None:
    """A long path of blocks is cut, and control characters are escaped."""
    without = (UnchangedRun(what="eager, checkpoint " + "encoder\n.blocks" * 9, kept_bytes=1, peak_bytes=2),)
    lines = text(found(row(1, 2048, 2048), without=without))

    assert all(len(line) <= 80 and "\n" not in line for line in lines)
