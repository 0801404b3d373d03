"""Pictures of what sizes need."""

import re
import xml.etree.ElementTree as ET

import pytest

from gradinspect.analyses.planning.boundary import SizeRow
from gradinspect.analyses.planning.rank_numbers import WORLD_SIZE
from gradinspect.analyses.planning.size_pairs import PairRow, PairTable
from gradinspect.analyses.planning.sizes import SizeTable
from gradinspect.renderers.picture.charts import HEIGHT, TOP
from gradinspect.renderers.picture.size_curve import render_pair_curve, render_size_curve

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "a<b>&\x1b.py"


def rows(*peaks: int) -> tuple[SizeRow, ...]:
    """Make rows of sizes 1, 2, 4 ..., of which 0 bytes failed."""
    return tuple(SizeRow(size=2**n, peak_bytes=peak, failure="" if peak else "too few") for n, peak in enumerate(peaks))


def texts(picture: str) -> list[str]:
    """List what is written."""
    return [one.text or "" for one in ET.fromstring(picture).iter(f"{SVG}text")]  # noqa: S314  # ours


def lines(picture: str) -> list[list[tuple[float, float]]]:
    """List the points of each line."""
    paths = [one.get("d", "") for one in ET.fromstring(picture).iter(f"{SVG}path") if one.get("class") == "line"]  # noqa: S314  # ours
    return [[(float(x), float(y)) for x, y in re.findall(r"([\d.]+) ([\d.]+)", path)] for path in paths]


@pytest.mark.parametrize("name", ["batch", WORLD_SIZE])
def test_the_peak_of_each_size_is_a_point(name: str) -> None:
    """As high as its bytes; sizes that failed are left out."""
    table = SizeTable(source=HOSTILE, name=name, limit=2048, rows=rows(0, 1024, 2048, 4096), largest=4)
    picture = render_size_curve(table)
    (line,) = lines(picture)

    assert [y for _, y in line] == pytest.approx([TOP + HEIGHT * share for share in (0.75, 0.5, 0)], abs=0.1)
    assert [x for x, _ in line] == sorted(x for x, _ in line)
    assert {f"peak by {name}: 4 fits (predicted)", "limit 2.0 KiB", "a<b>&\\x1b.py"} <= {*texts(picture)}


def test_the_largest_of_a_pair_is_a_line_with_its_numbers() -> None:
    """Rows in which nothing fits are left out."""
    found = [(1, 100), (2, 50), (4, None)]
    table = PairTable(
        source=HOSTILE, names=("batch", "seq"), limit=2048,
        rows=tuple(PairRow(number=n, rows=rows(1024), largest=largest) for n, largest in found),
    )  # fmt: skip
    picture = render_pair_curve(table)

    assert len(lines(picture)[0]) == 2
    assert {"100", "50", "1", "2", "batch", "largest seq by batch, limit 2.0 KiB (predicted)"} <= {*texts(picture)}


def test_without_a_limit_each_number_has_a_line() -> None:
    """In its color, named above."""
    table = PairTable(
        source="train.py", names=("batch", "seq"), limit=None,
        rows=tuple(PairRow(number=n, rows=rows(1024 * n, 2048 * n)) for n in (1, 4)),
    )  # fmt: skip
    picture = render_pair_curve(table)

    assert list(map(len, lines(picture))) == [2, 2]
    assert {"batch 1", "batch 4", "seq"} <= {*texts(picture)}


def test_nothing_that_fits_is_a_sentence() -> None:
    """And a picture all the same."""
    table = PairTable(source="train.py", names=("a", "b"), limit=1, rows=(PairRow(number=1, rows=rows(5)),))

    assert "no b fits" in texts(render_pair_curve(table))
