"""Numbers, shapes and strings as people read them."""

import pytest
from factories import tensor_info
from hypothesis import given
from hypothesis import strategies as st

from gradinspect.errors import GradInspectError
from gradinspect.graph import TensorInfo
from gradinspect.units import (
    escape_control,
    format_beside,
    format_bytes,
    format_count,
    format_dtype,
    format_growth,
    format_ordinal,
    format_share,
    format_tensor,
    parse_bytes,
)


@pytest.mark.parametrize(
    ("num_bytes", "expected"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (1024**2 - 1, "1.0 MiB"),
        (53_582_234, "51.1 MiB"),
        (1024**3, "1.0 GiB"),
        (3 * 1024**4, "3.0 TiB"),
        (5000 * 1024**4, "5000.0 TiB"),
    ],
)
def test_format_bytes(num_bytes: int, expected: str) -> None:
    """A byte count has a binary unit, never reads 1024.0 of one, and ends at TiB."""
    assert expected == format_bytes(num_bytes)


@pytest.mark.parametrize(
    ("num_bytes", "limit", "expected"),
    [
        (1024**2 + 30_000, 1024**2, "1.03 MiB"),
        (1024**2 - 100, 1024**2, "1023.9 KiB"),
        (1024**2 + 1, 1024**2, "1,048,577 B"),
        (1024**2, 1024**2, "1.0 MiB"),
        (1024**2, 2 * 1024**2, "1.0 MiB"),
        (1024**2, None, "1.0 MiB"),
    ],
)
def test_format_beside(num_bytes: int, limit: int | None, expected: str) -> None:
    """A peak that does not fit is not written like its limit."""
    assert expected == format_beside(num_bytes, limit)


@given(st.integers(0, 2**44), st.integers(-(2**22), 2**22))
def test_two_sizes_are_written_alike_only_if_they_are_equal(num_bytes: int, more: int) -> None:
    """Whatever is compared, the two texts differ where the numbers do."""
    other = max(num_bytes + more, 0)

    assert (format_beside(num_bytes, other) == format_beside(other, num_bytes)) is (num_bytes == other)


@pytest.mark.parametrize(
    ("text", "num_bytes"),
    [("0", 0), ("24", 24), ("24B", 24), ("1KiB", 1024), ("1.5 kib", 1536), ("2MB", 2 * 1024**2), (" 3g ", 3 * 1024**3)],
)
def test_parse_bytes(text: str, num_bytes: int) -> None:
    """A size is read with or without a unit; each unit is 1024 of the one before."""
    assert num_bytes == parse_bytes(text)


@pytest.mark.parametrize("text", ["", "MiB", "-1", "1 XB", "1e3", "\u0661", "1MiB extra"])
def test_parse_bytes_refuses_what_is_none(text: str) -> None:
    """An invalid size is quoted, with an example of one."""
    with pytest.raises(GradInspectError, match="is not a valid size") as raised:
        parse_bytes(text)

    assert f"'{text}'" in str(raised.value)


@pytest.mark.parametrize(
    ("count", "expected"), [(0, "0 leaves"), (1, "1 leaf"), (2, "2 leaves"), (1_000_000, "1,000,000 leaves")]
)
def test_format_count_with_a_plural(count: int, expected: str) -> None:
    """A count agrees with its noun, and thousands have commas."""
    assert expected == format_count(count, "leaf", "leaves")


def test_a_place_in_an_order_has_its_ending() -> None:
    """Those from 11 to 13 of each hundred are their own."""
    numbers = (1, 2, 3, 4, 10, 11, 12, 13, 21, 101, 111, 1023)

    assert " ".join(map(format_ordinal, numbers)) == "1st 2nd 3rd 4th 10th 11th 12th 13th 21st 101st 111th 1,023rd"


def test_format_count_adds_an_s() -> None:
    """A regular noun needs no plural."""
    assert [format_count(count, "node") for count in (1, 2)] == ["1 node", "2 nodes"]


@pytest.mark.parametrize(
    ("part", "expected"),
    [(0, "<1%"), (9, "<1%"), (10, "1%"), (994, "99%"), (996, ">99%"), (999, ">99%"), (1000, "100%")],
)
def test_format_share(part: int, expected: str) -> None:
    """What is left of a part is not rounded away: 100% is all."""
    assert expected == format_share(part, 1000)


def test_format_dtype_keeps_an_unknown_one() -> None:
    """A dtype from a newer torch is shown by its full name."""
    assert [format_dtype(dtype) for dtype in ("bfloat16", "float4_e2m1fn_x2")] == ["bf16", "float4_e2m1fn_x2"]


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        (tensor_info(2, 3), "f32[2, 3]"),
        (tensor_info(), "f32[]"),
        (tensor_info(0, dtype="bool"), "bool[0]"),
        (TensorInfo(shape=("s0", 3), dtype="int64"), "i64[s0, 3]"),
        (
            TensorInfo(shape=(4,), dtype="float32", device="cuda:0", layout="sparse_coo", subclass="lib.Sub"),
            "f32[4] cuda:0 sparse_coo Sub",
        ),
        (TensorInfo(shape=(4,), dtype="float32", subclass="Plain"), "f32[4] Plain"),
    ],
)
def test_format_tensor(info: TensorInfo, expected: str) -> None:
    """A tensor shows its dtype, its shape, and only what is unusual about it."""
    assert expected == format_tensor(info)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("größe 重み 😀", "größe 重み 😀"),
        ("a\\b", "a\\b"),
        ("\x1b[31mred\x07", r"\x1b[31mred\x07"),
        ("two\r\nlines\ttab", r"two\r\nlines\ttab"),
        ("\x9b2J\x7f", r"\x9b2J\x7f"),
        ("evil\u202egnp.exe", r"evil\u202egnp.exe"),
        ("\u2028\u200b\ufeff", r"\u2028\u200b\ufeff"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\U000e0041"),
    ],
)
def test_escape_control(text: str, expected: str) -> None:
    """Control, bidi, invisible and undecodable characters become visible; everything else stays."""
    assert expected == escape_control(text)


@given(st.text(st.characters()))
def test_escape_control_leaves_nothing_a_terminal_obeys(text: str) -> None:
    """Whatever goes in, what comes out is printable, can be encoded, and does not change when escaped again."""
    escaped = escape_control(text)
    escaped.encode()

    assert escaped.isprintable()
    assert escaped == escape_control(escaped)


def test_the_local_part_of_a_tensor() -> None:
    """A DTensor has the shape of all ranks, and beside it that of this rank if it is a part."""
    kind = "torch.distributed.tensor.DTensor"

    assert format_tensor(TensorInfo(shape=(8, 4), dtype="float32", subclass=kind, local_shape=(2, 4))) == (
        "f32[8, 4] local [2, 4]"
    )
    assert format_tensor(TensorInfo(shape=(8,), dtype="float32", subclass=kind, local_shape=(8,))) == "f32[8] DTensor"


def test_a_small_growth_is_not_none() -> None:
    """`-0.0%` would say that nothing changed."""
    assert [format_growth(change, 1000) for change in (482, -5, -1, 1)] == ["+48.2%", "-0.5%", "-0.1%", "+0.1%"]
    assert format_growth(-8, 631_808) == "<0.1%"
