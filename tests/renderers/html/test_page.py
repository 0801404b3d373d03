"""The page: what is in the file, without a browser."""

import base64
import hashlib
import json
import math
import re
import sys
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from factories import gradient_stats, gradient_through, graph, leaf, op, product_plus_two, saved
from hypothesis import given
from strategies import graphs

from gradinspect.analyses.structure.focus import Focus, focus_graph
from gradinspect.analyses.structure.folding import fold_graph
from gradinspect.graph import Frame, Graph, Hook, ModuleCall, Root, Storage
from gradinspect.renderers.html.page import SCRIPTS, render_html
from gradinspect.renderers.html.sides_page import SCRIPTS as SIDES_SCRIPTS
from gradinspect.renderers.html.step_page import SCRIPTS as STEP_SCRIPTS
from gradinspect.renderers.html.tree import MAX_ITEMS, page_scopes
from gradinspect.renderers.picture.colors.palettes import contrast as contrast_of
from gradinspect.renderers.picture.plan.parts import DrawOptions

HOSTILE = "</script><img onerror=alert(1) src=x>&\u2028\u202e\udcff"
ASSETS = Path(str(files("gradinspect.renderers"))) / "html"


class Parsed(HTMLParser):
    """Collects the elements of a page, and the text of its scripts and styles."""

    def __init__(self, page: str) -> None:
        """Read a page."""
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the tag."""
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        """Let the text that follows belong to no element."""
        self.tags.append(("", {}))

    def handle_data(self, data: str) -> None:
        """Keep the text of the element that was opened last."""
        tag, attributes = self.tags[-1] if self.tags else ("", {})
        key = attributes.get("id") or tag
        self.texts[key] = self.texts.get(key, "") + data

    @property
    def data(self) -> Any:
        """What the page knows of the graph."""
        return json.loads(self.texts["graph"])


def hostile_graph() -> Graph:
    """Build a graph whose every name would break out of an element."""
    return graph(
        op(HOSTILE, 1, None, module=0, frame=0, function=HOSTILE, hooks=(Hook(kind="pre", name=HOSTILE),),
           saved=(saved(HOSTILE, 2, storage=0),)),
        leaf(HOSTILE, 3),
        source=HOSTILE,
        modules=(ModuleCall(path=HOSTILE, class_name=HOSTILE),),
        frames=(Frame(file=HOSTILE, line=1, code=HOSTILE, function=HOSTILE),),
        storages=(Storage(num_bytes=8, name=HOSTILE),),
        warnings=(HOSTILE,),
        arguments={HOSTILE: (HOSTILE, "b")},
    )  # fmt: skip


def test_hostile_names_stay_text() -> None:
    """Nothing a program is called can end the script element, begin another element, or fail to be written."""
    page = render_html(hostile_graph())
    page.encode()
    plain = {tag for tag, _ in Parsed(render_html(product_plus_two())).tags}

    assert plain == {tag for tag, _ in Parsed(page).tags}
    assert "img" not in plain
    assert page.count("</script>") == 2
    assert any("onerror=alert(1)" in text for text in Parsed(page).data["texts"])


def test_the_policy_names_what_is_in_the_page() -> None:
    """Nothing may be loaded or run but the script and the style whose hashes the policy has."""
    parsed = Parsed(render_html(product_plus_two()))
    policy = next(attributes["content"] for tag, attributes in parsed.tags if "http-equiv" in attributes)

    def sha(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    assert (
        f"default-src 'none'; script-src {sha(parsed.texts['script'])}; style-src {sha(parsed.texts['style'])}"
        == policy
    )


def test_nothing_is_loaded() -> None:
    """No element has an address, and no style or script names one, but the name of the SVG language."""
    page = render_html(product_plus_two())
    addresses = re.findall(r"https?://[^'\"\s]+", page)

    assert {"http://www.w3.org/2000/svg"} == set(addresses)
    assert not [attributes for _, attributes in Parsed(page).tags if {"src", "href", "style"} & attributes.keys()]
    assert "url(" not in page
    assert "@import" not in page


def test_our_scripts_write_text_only() -> None:
    """No script of ours parses HTML or runs text, and each file is in the page."""
    scripts = {path.relative_to(ASSETS).as_posix(): path.read_text() for path in ASSETS.rglob("*.js")}
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|fetch\(|XMLHttpRequest"

    assert {f"{name}.js" for name in (*SCRIPTS, *SIDES_SCRIPTS, *STEP_SCRIPTS)} == set(scripts)
    assert not [name for name, script in scripts.items() if re.search(forbidden, script)]


@pytest.mark.parametrize(
    ("norm", "shown"), [(0.123456, 0.1235), (sys.float_info.max, sys.float_info.max), (math.inf, "inf")]
)
def test_every_norm_can_be_written(norm: float, shown: float | str) -> None:
    """Rounding does not make the largest number infinite, which JSON does not have."""
    through = gradient_through("MulBackward0", gradient_stats(norm), gradient_stats(1.0))

    assert shown in [node.get("norm") for node in Parsed(render_html(through)).data["nodes"]]


@pytest.mark.slow
@given(graphs())
def test_every_node_is_in_one_scope(any_graph: Graph) -> None:
    """Each node but the leaves is an item of one scope, each scope of one other, and equal graphs give equal bytes."""
    scopes, _ = page_scopes(any_graph, fold_graph(any_graph))
    items = sorted(item for scope in scopes for item in scope.items)
    drawn = [place for place, node in enumerate(any_graph.nodes) if node.kind != "accumulate_grad"]
    root_leaves = {root.node for root in any_graph.roots} - set(drawn)

    assert sorted([*range(1 - len(scopes), 0), *drawn, *root_leaves]) == items
    assert all(len(scope.items) <= MAX_ITEMS + len(root_leaves) for scope in scopes)
    assert render_html(any_graph) == render_html(any_graph)


def test_many_copies_are_the_first_and_a_box_for_the_others() -> None:
    """A long repeat opens into something that can be looked at."""
    steps = [op("TanhBackward0" if place % 2 else "MulBackward0", place + 1) for place in range(2000)]
    long = graph(*steps, leaf("w", 3))
    scopes, _ = page_scopes(long, fold_graph(long))

    assert [scope.kind for scope in scopes[:4]] == ["graph", "repeat", "copy", "run"]
    assert scopes[1].times == 999
    assert scopes[3].title == "copies 2 to 999"
    assert (scopes[1].first, scopes[1].last) == (0, 1997)


def test_a_repeat_is_named_by_the_numbers_of_its_calls() -> None:
    """As in the tree and the picture; by the first and the last if there is no one name for just these."""

    def title(*paths: str) -> str:
        names = ("ReluBackward0", *("CosBackward0", "SinBackward0") * 5)
        nodes = [
            op(name, len(names) * place + at + 1, module=place if at else None)
            for place in range(len(paths))
            for at, name in enumerate(names)
        ]
        whole = graph(*nodes, leaf("w", 3), modules=tuple(ModuleCall(path=path, class_name="Up") for path in paths))
        return next(scope.title for scope in page_scopes(whole, fold_graph(whole))[0] if scope.kind == "repeat")

    assert title("up1", "up2", "up3", "last") == "with up1-3 Up"
    assert title("query", "key", "value", "last") == "with query … value Up"


def test_many_different_nodes_are_parted_into_runs() -> None:
    """A flat graph of thousands of nodes has few boxes at each level."""
    flat = graph(*(op(f"A{place}", place + 1) for place in range(15_000)), leaf("w", 3))
    scopes, _ = page_scopes(flat, fold_graph(flat))

    assert len(scopes[0].items) == 2
    assert max(len(scope.items) for scope in scopes) == MAX_ITEMS


def test_the_data_tells_what_the_graph_holds() -> None:
    """Roots, shared leaves, argument names and saved attributes are in the page."""
    data = Parsed(render_html(product_plus_two())).data
    texts = data["texts"]
    product = data["nodes"][0]

    assert data["roots"] == [[0, 0, ""]]
    assert data["nodes"][2]["leaf"]["uses"] == 2
    assert [texts[edge[2]] for edge in product["edges"]] == ["self", "other"]
    assert [texts[value[0]] for value in product["saved"]] == ["_saved_other", "_saved_self"]


def test_held_memory_is_in_the_page() -> None:
    """By module where there are any, else by class; none when nothing is held beyond parameters."""
    held = Parsed(render_html(product_plus_two())).data["memory"]
    inside = graph(
        op("MulBackward0", 1, module=1, saved=(saved("_saved_self", 2, storage=0),)),
        op("ExpBackward0", 2, module=0, saved=(saved("_saved_result", 3, storage=1),)), leaf("w", 3),
        modules=(ModuleCall(path="", class_name="Net"), ModuleCall(path="fc", class_name="Linear", parent=0)),
        storages=(Storage(num_bytes=8), Storage(num_bytes=12)),
    )  # fmt: skip
    by_module = Parsed(render_html(inside)).data["memory"]

    assert (held["by"], held["modules"]) == ("By node class", [["MulBackward0", "", "", 8, []]])
    assert held["moments"] == [[0, 8, 0]]
    assert by_module["modules"] == [["model", "Net", "", 20, [["fc", "Linear", "fc", 8, []]]]]
    assert by_module["moments"] == [[0, 8, 12], [1, 12, 0]]
    assert Parsed(render_html(graph(op("ExpBackward0", 1), leaf("w", 3)))).data["memory"] is None


def test_a_part_of_a_graph_says_so() -> None:
    """The page has the numbers of the whole graph, what is cut from each node, and how much is left."""
    part, cut = focus_graph(product_plus_two(), Focus(around="#1", radius=0))
    data = Parsed(render_html(part, DrawOptions(cut=cut))).data

    assert data["cut"] == {"numbers": [1, 2], "lost": {}, "came": {"0": 1, "1": 1}}
    assert data["figures"] == ["1 of 2 nodes, with 1 of 1 leaf: within 0 of #1"]
    assert data["nodes"][1]["leaf"]["uses"] == 2


def test_a_root_that_is_a_leaf_is_shown() -> None:
    """Backward called on a leaf itself still gives a page with that leaf in it."""
    lone = graph(leaf("w", 3), roots=())
    lone = Graph(
        **{name: getattr(lone, name) for name in lone.__struct_fields__ if name != "roots"}, roots=(Root(node=0),)
    )

    assert Parsed(render_html(lone)).data["scopes"][0]["items"] == [0]


@pytest.mark.parametrize("name", ["page.css", "body.html"])
def test_assets_are_found_beside_the_package(name: str) -> None:
    """What the page is put together from can be read where the package is installed."""
    assert (ASSETS / name).read_text()


@pytest.mark.parametrize("scheme", [0, 1])
def test_words_can_be_told_from_what_is_behind_them(scheme: int) -> None:
    """In the light and the dark scheme, ink on each ground it stands on has a contrast of 4.5 at least."""
    style = (ASSETS / "page.css").read_text()
    blocks = re.findall(r":root \{(.*?)\}", style, flags=re.DOTALL)
    colors = dict(re.findall(r"--([\w-]+): (#\w{6})", blocks[scheme]))
    pairs = [(ink, ground) for ink in ("ink", "quiet") for ground in ("paper", "card", "scope", "scope-2", "custom")]
    pairs += [(f"{name}-ink", name) for name in ("closed", "repeat", "leaf", "shared", "root")]
    pairs += [("quiet", "closed"), ("quiet", "repeat"), ("accent", "card"), ("accent", "paper"), ("closed-ink", "card")]

    def contrast(ink: str, ground: str) -> float:
        return contrast_of(colors[ink], colors[ground])

    assert not [(ink, ground, contrast(ink, ground)) for ink, ground in pairs if contrast(ink, ground) < 4.5]


def test_a_transformer_of_twelve_blocks_stays_small() -> None:
    """A graph of the size of GPT-2 is far below a megabyte, its names written out."""
    modules = [
        ModuleCall(path=f"transformer.h.{block // 4}.part.{block % 4}", class_name="Part") for block in range(48)
    ]
    nodes = [
        op("MmBackward0", place + 1, 480 + place // 10, shape=(8, 1024, 768), module=place // 10, frame=place % 40,
           saved=(saved("_saved_self", 8, 1024, 768, storage=place), saved("_saved_mat2", 768, 768, storage=place)))
        for place in range(480)
    ]  # fmt: skip
    frames = tuple(Frame(file="model.py", line=line, code="x = self.part(x)" * 3) for line in range(40))
    leaves = [leaf(f"transformer.h.{place}.part.weight", 768, 768) for place in range(48)]
    storages = tuple(Storage(num_bytes=4) for _ in range(480))
    page = render_html(graph(*nodes, *leaves, modules=tuple(modules), frames=frames, storages=storages))

    assert len(page.encode()) < 400_000


@pytest.mark.parametrize("name", ["page.css", "side_page/sides.css", "step.css"])
def test_a_printed_page_has_a_margin_of_its_own(name: str) -> None:
    """A PDF of a browser without a window has none otherwise."""
    assert "@page { margin: 1.2cm; }" in (ASSETS / name).read_text()
