"""Conditions that choose rows: what holds, and what is said of those that cannot be read."""

import pytest

from gradinspect.analyses.selection.conditions import MAX_NESTED, Value, fields_in, holds, parse_condition
from gradinspect.errors import GradInspectError

ROW: dict[str, tuple[Value, ...]] = {
    "bytes": (1024,), "class": ("ConvolutionBackward0",), "module": ("h.3.attn",), "status": ("live", "modified"),
    "norm": (float("nan"),), "name": (), "flops": (2.5e9,), "line": (None,), "shape": ("f32[2, 3]",),
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bytes>1000", True),
        ("bytes > 1KiB", False),
        ("bytes>=1KiB and bytes<=1KiB", True),
        ("class=Convolution", False),
        ("class~Convolution", True),
        ("class~Conv*0 and not class~*1", True),
        ("class!~Conv", False),
        ("module~h.* and status=modified", True),
        ("status!=live", False),
        ("norm=nan", True),
        ("norm>0", False),
        ("name=x or bytes<2", False),
        ("not (name=x or bytes<2)", True),
        ("flops>2G", True),
        ("line=none", True),
        ('shape="f32[2, 3]"', True),
        ("bytes<1 or bytes>1 and class=x", False),
        ("name!=x", True),
        ("bytes=1024 or bytes=and and name=x", True),
    ],
)
def test_a_condition_holds(text: str, expected: bool) -> None:
    """Numbers with units, patterns, fields of several values or none; `and` binds more than `or`."""
    assert expected == holds(parse_condition(text, ROW), ROW.__getitem__)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bytez>1", 'This table has no field "bytez".'),
        ("bytes>>1", "The condition 'bytes>>1' cannot be read at \"bytes>>\"."),
        ("bytes>much", "The condition 'bytes>much' cannot be read at \"bytes>much\"."),
        ("bytes>1 name", "The condition 'bytes>1 name' cannot be read at \"name\"."),
        ("bytes", "The condition 'bytes' lacks a comparison at its end."),
        ("", "The condition '' lacks a comparison at its end."),
        ("(bytes>1", "The condition '(bytes>1' cannot be read at \"(\"."),
        ("bytes is 1", "The condition 'bytes is 1' cannot be read at \"bytes is\"."),
        ("name='x", "The condition 'name='x' cannot be read at \"'x\"."),
        ("(" * 400 + "bytes>1", 'cannot be read at "(".'),
    ],
)
def test_a_condition_that_cannot_be_read(text: str, expected: str) -> None:
    """One sentence with the part that is wrong, and how to write it."""
    with pytest.raises(GradInspectError) as caught:
        parse_condition(text, ROW)

    assert expected in str(caught.value)


def test_the_fields_that_it_compares() -> None:
    """At any depth."""
    condition = parse_condition("not (bytes>1 or module~h.*) and name=x", ROW)

    assert fields_in(condition) == {"bytes", "module", "name"}


@pytest.mark.parametrize(
    ("text", "value"), [("50%", 0.5), ("3K", 3e3), ("3m", 3e6), ("3G", 3e9), ("3T", 3e12), ("3P", 3e15), ("1e3", 1e3)]
)
def test_what_a_prefix_stands_for(text: str, value: float) -> None:
    """Powers of a thousand, in any case."""
    assert holds(parse_condition(f"flops={text}", ROW), lambda _: (value,))


@pytest.mark.parametrize("nested", ["not {}", "({})"])
def test_how_deep_a_condition_may_be_nested(nested: str) -> None:
    """By words as by brackets."""
    deepest = "bytes>1"
    for _ in range(MAX_NESTED):
        deepest = nested.format(deepest)

    assert fields_in(parse_condition(deepest, ROW)) == {"bytes"}
    with pytest.raises(GradInspectError, match="cannot be read"):
        parse_condition(nested.format(deepest), ROW)
