"""The headlines of one run at 80 columns, and narrower: at most 24 lines, of which each says where to see more."""

import pytest
from factories import graph, leaf, op, product_plus_two, saved
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot
from msgspec.structs import replace
from rich.cells import cell_len
from strategies import examples, graphs

from gradinspect.checks.findings import Finding, Findings, Place
from gradinspect.checks.overview import OtherCall, Overview
from gradinspect.graph import Edge, Frame, Graph, ModuleCall, Storage
from gradinspect.renderers.terminal.overview import OverviewPage

SCREEN = 24


def finding(code: str) -> Finding:
    """Find something on a line."""
    place = Place(role="backward", file="train.py", line=33, code="loss.backward()")
    return Finding(code=code, title="a title " * 9, text="", places=(place,), remedy="")


def checked(*codes: str, is_complete: bool = True, notes: tuple[str, ...] = ()) -> Findings:
    """Find something in two calls."""
    return Findings(
        source="train.py", num_calls=2, findings=tuple(map(finding, codes)), is_complete=is_complete, notes=notes
    )


def text(found: Overview, *, width: int = 80, source: str = "train.py") -> str:
    """Write the page."""
    return "\n".join(line.plain for line in OverviewPage(width=width).lines(found, source)) + "\n"


def test_a_graph_of_a_capture_file() -> None:
    """What a file cannot show is said."""
    found = Overview(source="run.json", graph=product_plus_two(), findings=None)

    assert text(found, source="run.json") == snapshot("""\
backward #1
graph      3 nodes, 1 leaf, depth 3
           gradinspect trace run.json
memory     8 B held
             (no line recorded)          8 B  100%
           gradinspect memory run.json
check      A capture file shows one moment, and a check watches a program.
           gradinspect check run.json
gradients  Not measured: backward did not run to its end.
           gradinspect grads run.json
""")


def test_a_module_with_nearly_all_is_looked_inside_of() -> None:
    """A head beside it does not hide the equal blocks."""
    names = [("", "Model", None), ("head", "Linear", 0), ("body", "Body", 0)]
    names += [(f"body.h.{place}", "Block", 2) for place in range(12)]
    modules = tuple(ModuleCall(path=path, class_name=name, parent=parent) for path, name, parent in names)
    nodes = [
        op("MulBackward0", place, module=place, saved=(saved("_saved_x", 256, storage=place - 1),))
        for place in (1, *range(3, 15))
    ]
    nodes = [replace(node, next_edges=(Edge(next_node=place + 1),)) for place, node in enumerate(nodes)]
    storages = tuple(Storage(num_bytes=1024, origin="activation") for _ in range(14))
    found = Overview(
        source="run.json", graph=graph(*nodes, leaf("x", 3), modules=modules, storages=storages), findings=None
    )

    assert text(found, source="").splitlines()[1:6] == snapshot(
        [
            "graph      14 nodes, 1 leaf, depth 14",
            "           body.h.0-11 Block ×12, head Linear",
            "memory     13.0 KiB held",
            "             body.h.0-11  Block ×12, 1.0 KiB each   12.0 KiB   92%",
            "             (outside of these)                      1.0 KiB    8%",
        ]
    )


def test_a_module_with_most_of_it_is_looked_inside_of_where_equal_blocks_are() -> None:
    """Its blocks are one row, and what stands beside it stays."""
    names = [("", "Model", None), ("decoder", "Decoder", 0), ("encoder", "Encoder", 0)]
    names += [(f"encoder.stages.{place}", "Stage", 2) for place in range(3)]
    modules = tuple(ModuleCall(path=path, class_name=name, parent=parent) for path, name, parent in names)
    places = (1, 1, 3, 4, 5)
    nodes = [
        op("MulBackward0", index + 1, module=place, saved=(saved("_saved_x", 256, storage=index),))
        for index, place in enumerate(places)
    ]
    storages = tuple(Storage(num_bytes=1024, origin="activation") for _ in places)
    found = Overview(
        source="run.json", graph=graph(*nodes, leaf("x", 3), modules=modules, storages=storages), findings=None
    )

    assert text(found, source="").splitlines()[1:5] == snapshot(
        [
            "graph      6 nodes, 1 leaf, depth 6",
            "           encoder.stages.0-2 Stage ×3, decoder Decoder",
            "memory     5.0 KiB held",
            "             encoder.stages.0-2  Stage ×3, 1.0 KiB each    3.0 KiB   60%",
        ]
    )


def test_findings() -> None:
    """Three of them with their lines, and how many more."""
    found = Overview(
        source="train.py",
        graph=product_plus_two(),
        findings=checked("GI101", "GI301", "GI302", "GI501"),
        no_memory="No.",
    )
    assert text(found) == snapshot("""\
backward #1
graph      3 nodes, 1 leaf, depth 3
           gradinspect trace train.py
memory     8 B held
             (no line recorded)          8 B  100%
           gradinspect memory train.py
check      4 findings in 2 backward calls:
             GI101  train.py:33  a title a title a title a title a title a titl…
             GI301  train.py:33  a title a title a title a title a title a titl…
             GI302  train.py:33  a title a title a title a title a title a titl…
             1 more
           gradinspect check train.py
gradients  Not measured: backward did not run to its end.
           gradinspect grads train.py
peak       No.
           gradinspect fit train.py
""")


def test_a_single_finding_is_there_whole() -> None:
    """No word is lost where there is room for it below."""
    found = Overview(source="train.py", graph=product_plus_two(), findings=checked("GI101"), no_memory="No.")
    lines = text(found).splitlines()
    first = next(place for place, line in enumerate(lines) if "GI101" in line)

    assert [line.strip() for line in lines[first : first + 2]] == [
        "GI101  train.py:33  a title a title a title a title a title a title",
        "a title a title a title",
    ]


def test_backward_calls_on_other_lines_are_named() -> None:
    """A generator's loss is called after the discriminator's; a long line of code keeps its beginning."""
    codes = ("d_fake.backward()", "opt.zero_grad(); (g_loss + penalty).backward(); opt.step()", "c()", "d()")
    calls = tuple(
        OtherCall(number=place + 2, file="src/gan.py", line=30 + place, code=code) for place, code in enumerate(codes)
    )
    found = Overview(source="gan.py", graph=product_plus_two(), findings=checked(), other_calls=calls)
    page = text(found).splitlines()

    assert page[:4] == snapshot(
        [
            "backward #1",
            "also #2 gan.py:30 d_fake.backward(), #3 gan.py:31 opt.zero_grad(); (g_loss +",
            "  penalty…, #4 gan.py:32 c(), 1 more; trace --backward N shows one",
            "graph      3 nodes, 1 leaf, depth 3",
        ]
    )
    assert max(map(cell_len, page)) <= 80
    assert "also" not in text(replace(found, other_calls=()))
    assert "--backward" not in text(found, source="")


@pytest.mark.parametrize("is_complete", [True, False])
def test_a_verdict_says_what_it_did_not_see(is_complete: bool) -> None:  # a parameter
    """And why."""
    found = checked(is_complete=is_complete, notes=("Not checked: code under torch.compile, at a.py:3.",))
    page = text(Overview(source="train.py", graph=product_plus_two(), findings=found))

    assert ("but not all was looked at" in page) != is_complete
    assert "code under torch.compile" in page


def test_what_is_in_the_outermost_module_itself_is_not_outside_of_modules() -> None:
    """It is outside of the modules that are listed, also where the path of the outermost is empty."""
    held = graph(
        op("MulBackward0", 1, module=0, saved=(saved("_saved_self", 64, storage=0),)),
        op("AddmmBackward0", 2, module=1, saved=(saved("_saved_mat1", 32, storage=1),)),
        op("AddmmBackward0", 3, module=2, saved=(saved("_saved_mat1", 32, storage=2),)),
        leaf("weight", 2, 3),
        storages=(Storage(num_bytes=256), Storage(num_bytes=128), Storage(num_bytes=128)),
        modules=(
            ModuleCall(path="", class_name="Net"),
            ModuleCall(path="up", class_name="Linear", parent=0),
            ModuleCall(path="down", class_name="Linear", parent=0),
        ),
    )
    page = text(Overview(source="train.py", graph=held, findings=None))

    assert "(outside modules)" not in page
    assert [line.split() for line in page.splitlines() if "(outside of these)" in line] == [
        ["(outside", "of", "these)", "256", "B", "50%"]
    ]


@pytest.mark.parametrize(
    ("first", "said"), [(300, "(outside of these), mostly loss.py:7"), (256, "(outside of these)")]
)
def test_the_line_that_holds_most_of_what_is_outside_is_named(first: int, said: str) -> None:
    """A loss in the forward function of the model holds more than all of its layers; half is not most."""
    sizes = (first, 200, 56, 64)
    held = graph(
        op("NllLossBackward0", 1, module=0, frame=0, saved=(saved("_saved_self", 64, storage=0),)),
        op("MulBackward0", 2, module=0, frame=1, saved=(saved("_saved_self", 64, storage=1),)),
        op("SinBackward0", 3, saved=(saved("_saved_self", 64, storage=2),)),
        op("AddmmBackward0", 4, module=1, frame=2, saved=(saved("_saved_mat1", 32, storage=3),)),
        leaf("weight", 2, 3),
        storages=tuple(Storage(num_bytes=size) for size in sizes),
        modules=(
            ModuleCall(path="", class_name="Net"),
            ModuleCall(path="up", class_name="Linear", parent=0),
        ),
        frames=tuple(Frame(file="src/loss.py", line=line, code="") for line in (7, 8, 9)),
    )
    page = text(Overview(source="train.py", graph=held, findings=None))

    assert [line.strip().partition("   ")[0] for line in page.splitlines() if "outside" in line] == [said]


def test_what_follows_each_verb_comes_once_where_it_is_long() -> None:
    """No command is cut: all can be typed."""
    source = "train.py -- --data corpora/wikitext-2 --epochs 1 --batch_size 8 --bptt 10 --log-interval 20"
    found = Overview(source="train.py", graph=product_plus_two(), findings=None)
    *lines, first, second = text(found, source=source).splitlines()

    assert [line.strip() for line in lines if "gradinspect" in line] == [
        f"gradinspect {verb} …" for verb in ("trace", "memory", "check", "grads")
    ]
    assert first == "…          train.py -- --data corpora/wikitext-2 --epochs 1 --batch_size 8"
    assert second == "           --bptt 10 --log-interval 20"


@given(graphs(), st.integers(30, 120))
@settings(max_examples=examples(40))
def test_any_graph_fits_a_screen(graph: Graph, width: int) -> None:
    """However its modules are called."""
    page = OverviewPage(width=width)
    lines = list(page.lines(Overview(source="t.py", graph=graph, findings=checked("GI101")), "t.py"))

    assert max(cell_len(line.plain) for line in lines[1:]) <= width
    assert width < 80 or len(lines) <= SCREEN
