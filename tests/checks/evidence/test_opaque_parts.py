"""What no rule checks is said."""

from factories import graph, leaf, op

from gradinspect.checks.evidence.opaque_parts import opaque_notes, opaque_parts
from gradinspect.graph import Frame


def test_each_kind_of_part_is_named_once_with_its_lines() -> None:
    """Compiled functions, nodes of C++, reentrant checkpoints; all other nodes are checked."""
    record = graph(
        op("CompiledFunctionBackward", 1, kind="compiled", frame=0),
        op("CompiledFunctionBackward", 2, kind="compiled", frame=1),
        op("CheckpointFunctionBackward", 3, kind="custom", function="torch.utils.checkpoint.CheckpointFunction"),
        op("OddBackward", 4, kind="opaque", frame=0),
        op("MulBackward0", 5, frame=0),
        op("SquareBackward", 6, kind="custom", function="Square"),
        leaf("w", 2),
        frames=(Frame(file="train.py", line=7, code="y = f(x)"), Frame(file="train.py", line=9, code="z = f(y)")),
    )

    assert opaque_notes([*opaque_parts(record), *opaque_parts(record)]) == (
        "Not checked: code under torch.compile, at train.py:7, train.py:9. --eager runs it as it is written.",
        "Not checked: the graph that a reentrant checkpoint builds during backward, at an unknown line.",
        "Not checked: OddBackward, an unknown C++ node, at train.py:7.",
    )


def test_many_lines_are_counted() -> None:
    """A loop over layers is no wall of text."""
    assert opaque_notes(("it", f"t.py:{line}") for line in range(5)) == (
        "Not checked: it, at t.py:0, t.py:1, t.py:2 and 2 other lines.",
    )
