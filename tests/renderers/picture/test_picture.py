"""A picture in any case."""

import sys
from pathlib import Path

import pytest
from factories import graph, leaf, op, product_plus_two
from runs import MEASURING

from gradinspect.errors import GradInspectError
from gradinspect.graph import Graph
from gradinspect.renderers.picture import picture
from gradinspect.renderers.picture.graphviz import Engine, find_engine
from gradinspect.renderers.picture.picture import draw
from gradinspect.renderers.picture.plan.parts import DrawOptions

PURE = find_engine(path="")


def chain(length: int) -> Graph:
    """Make a chain in which nothing repeats."""
    return graph(*(op(f"Op{place}Backward0", place + 1) for place in range(length)), leaf("w", 2, 3))


def slow_engine(folder: Path, *, more_than: int) -> Engine:
    """Make an engine that hangs on a text of more than some arrows."""
    path = folder / "slow"
    path.write_text(
        f"#!{sys.executable}\nimport subprocess, sys, time\ntext = sys.stdin.read()\n"
        f"time.sleep(60 if text.count('->') > {more_than} else 0)\n"
        f"subprocess.run([{str(PURE.program)!r}, *sys.argv[1:]], input=text, text=True, check=True)\n"
    )
    path.chmod(0o755)
    return Engine(path, writes_pdf=False)


def test_all_of_a_very_large_graph_is_drawn() -> None:
    """Every node is in the SVG, and no Graphviz is asked; other formats fold, and say so."""
    drawn = draw(chain(5000), "svg", DrawOptions(full=True), engine=Engine(Path("none"), writes_pdf=False))

    assert drawn.notes == ("too large for Graphviz: drawn in rows",)
    assert drawn.content.count(b'<g id="n') == 5000


def test_all_that_takes_too_long_is_drawn_in_rows(tmp_path: Path) -> None:
    """When Graphviz does not finish all of a graph, nothing is left out for that."""
    engine = slow_engine(tmp_path, more_than=100)
    drawn = draw(chain(200), "svg", DrawOptions(full=True), engine=engine, time_limit_s=1)

    assert drawn.content.count(b'<g id="n') == 200


@pytest.mark.parametrize(
    ("picture_format", "start"),
    [("dot", b"digraph"), ("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")],
)
def test_formats(picture_format: picture.PictureFormat, start: bytes) -> None:
    """Each format begins as its readers expect, and is the same each time."""
    first = draw(product_plus_two(), picture_format, engine=PURE)

    assert first.content.startswith(start)
    assert first.notes == ()
    assert first == draw(product_plus_two(), picture_format, engine=PURE)


def test_too_slow_is_drawn_coarser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When time is up, a picture with fewer boxes is drawn, and a note tells why and what is missing."""
    for name in MEASURING:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(picture, "SECOND_TRY_SHARE", 60)  # a busy machine takes long to start the engine
    drawn = draw(chain(200), "svg", engine=slow_engine(tmp_path, more_than=100), time_limit_s=1)

    assert drawn.content.startswith(b"<?xml")
    assert drawn.notes == (
        "drawn with fewer boxes: no picture after 1 s",
        "162 nodes not drawn: limit is 40 boxes",
    )
    assert b"162 nodes not drawn" in drawn.content


def test_engine_that_never_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that fails on the smallest picture is an error, not an endless loop."""
    monkeypatch.setattr(picture, "LAST_TRY_S", 0.1)

    with pytest.raises(GradInspectError, match="The picture could not be drawn"):
        draw(chain(30), "svg", engine=slow_engine(tmp_path, more_than=0), time_limit_s=0.2)


def test_long_chain_is_cut() -> None:
    """15,000 nodes in which nothing repeats are drawn up to the budget, and the picture tells how many are not."""
    drawn = draw(chain(15_000), "svg", DrawOptions(max_boxes=300), engine=PURE)

    assert b"14,701 nodes not drawn" in drawn.content
    assert drawn.content.count(b'class="node"') == 302  # 299 nodes, the leaf, the mark on the root, the cut


def test_full_dot_is_unlimited() -> None:
    """DOT text asked for in full has every node, whatever its size."""
    drawn = draw(chain(9_000), "dot", DrawOptions(full=True))

    assert drawn.notes == ()
    assert drawn.content.count(b" -> ") == 9_001


def test_png_is_twice_as_fine_and_capped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small PNG is drawn at 192 dpi; a large one with fewer pixels, and says so; one too large to read is refused."""
    small = draw(product_plus_two(), "png", engine=PURE)
    monkeypatch.setattr(picture, "MAX_PIXELS", 100_000)
    capped = draw(product_plus_two(), "png", engine=PURE)
    monkeypatch.setattr(picture, "MAX_PIXELS", 10_000)
    with pytest.raises(GradInspectError, match="would be too large to read") as refused:
        draw(product_plus_two(), "png", engine=PURE)
    width, height = (int.from_bytes(capped.content[at : at + 4]) for at in (16, 20))

    assert "a smaller depth" in (refused.value.hint or "")
    assert small.notes == ()
    assert 90_000 < width * height <= 105_000
    assert len(capped.notes) == 1
    assert "dpi instead of 192" in capped.notes[0]


def test_pdf_without_typst_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing can write PDF, the error prints the install line before any layout is tried."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)

    with pytest.raises(GradInspectError, match=r"pip install 'gradinspect\[pdf\]'"):
        draw(product_plus_two(), "pdf", engine=PURE)


def test_pdf_of_an_engine_that_writes_it(tmp_path: Path) -> None:
    """An engine that writes PDF is asked for it; the date is taken out, so that the same graph gives the same file."""
    path = tmp_path / "dot"
    path.write_text(f"#!{sys.executable}\nimport sys\nprint('%PDF /CreationDate (D:20250102030405Z)', *sys.argv[1:])\n")
    path.chmod(0o755)

    drawn = draw(product_plus_two(), "pdf", engine=Engine(path, writes_pdf=True))

    assert drawn.content == b"%PDF /CreationDate (D:19700101000000Z) -Kneato -Tpdf -n2\n"
