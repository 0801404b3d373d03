"""What an entry of device_differences takes away is what it is about, and nothing else."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from device_captures import (
    Capture,
    Rewriting,
    dropout_as_one_node,
    gradients_added_in_any_order,
    losses_not_read,
    ordered_by_edges,
)
from device_comparison import lines_that_differ
from device_recurrent import places_alone, recurrent_layers_as_nodes
from device_said import loaded, same
from device_texts import (
    Leaving,
    alike,
    dropout_steps,
    in_any_order,
    last_step,
    less_saved,
    lines_of_program,
    names_in_any_order,
    peak_in,
    peaks,
    rounded,
    rows_in_any_order,
    without,
)
from runs import gradinspect

PROGRAM = """
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 4), nn.Dropout(0.5))
cell = nn.GRUCell(4, 2)
first = model(torch.randn(5, 3))
second = model(first[:, :3])
hidden = cell(first + second)
loss = nn.functional.mse_loss(hidden, torch.zeros(5, 2)) * first.exp().mean()
loss.backward()
"""
REWRITINGS = [
    ordered_by_edges,
    dropout_as_one_node,
    gradients_added_in_any_order,
    losses_not_read,
    recurrent_layers_as_nodes,
]
CHANGES: dict[str, Callable[[Capture], Any]] = {
    "another line": lambda node: node.update(frame=node["frame"] - 1),
    "no line": lambda node: node.pop("frame"),
    "another module": lambda node: node.update(module=node["module"] - 1),
    "no module": lambda node: node.pop("module"),
    "an edge less": lambda node: node.update(next_edges=[None, *node["next_edges"][1:]]),
    "another shape": lambda node: node["forward_outputs"][0].update(shape=[1]),
    "nothing saved": lambda node: node.pop("saved"),
    "another maker": lambda node: node.update(made_by="TanhBackward0"),
}


@pytest.fixture(scope="module")
def second_order(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Capture the graph of the gradients of a program."""
    folder = tmp_path_factory.mktemp("captures")
    (folder / "program.py").write_text(PROGRAM)
    done = gradinspect("trace", "program.py", "--create-graph", "-o", "second.json", cwd=folder)

    assert done.returncode == 0, done.stderr
    return folder / "second.json"


def renumbered_by_chance(capture: Capture) -> Capture:
    """Number the nodes in another order in which edges lead to larger numbers, as those of two threads are."""
    nodes = capture["graph"]["nodes"]
    drawn, waiting = random.Random(3), [0] * len(nodes)  # noqa: S311  # the same on every run
    for node in nodes:
        for edge in node.get("next_edges", ()):
            waiting[edge["next_node"] if edge else 0] += edge is not None
    order = []
    ready = [number for number, count in enumerate(waiting) if count == 0]
    while ready:
        order.append(ready.pop(drawn.randrange(len(ready))))
        for edge in nodes[order[-1]].get("next_edges", ()):
            if edge is not None:
                waiting[edge["next_node"]] -= 1
                ready += [edge["next_node"]] * (waiting[edge["next_node"]] == 0)
    places = {number: place for place, number in enumerate(order)}
    graph = {**capture["graph"], "nodes": [nodes[number] for number in order]}
    return {**capture, "graph": with_places(graph, places)}


def with_places(value: Any, places: dict[int, int]) -> Any:
    """Write the numbers of nodes anew."""
    if isinstance(value, list):
        return [with_places(item, places) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: places[item]
        if key in {"next_node", "node", "made_by"} and isinstance(item, int)
        else with_places(item, places)
        for key, item in value.items()
    }


def changed(capture: Capture, name: str) -> Capture:
    """Change a product of matrices that a backward made."""
    found = [
        node
        for node in capture["graph"]["nodes"]
        if node["name"] == "MmBackward0" and node.get("module") and "made_by" in node and node["next_edges"][0]
    ]
    linear = [node for node in found if capture["graph"]["modules"][node["module"]]["class_name"] == "Linear"]
    CHANGES[name](linear[0])
    return capture


@pytest.mark.slow
@pytest.mark.parametrize("rewriting", REWRITINGS)
@pytest.mark.parametrize("name", CHANGES)
def test_what_is_wrong_with_a_node_stays(rewriting: Rewriting, name: str, second_order: Path) -> None:
    """Its order alone is taken away: a wrong line, a lost module and the like are not."""
    expected, found = loaded(second_order), renumbered_by_chance(loaded(second_order))

    assert not same(expected, found)
    assert same(*rewriting(*ordered_by_edges(expected, found)))
    assert not same(*rewriting(*ordered_by_edges(expected, changed(found, name))))


@pytest.mark.parametrize("name", ["no line", "no module"])
def test_a_lost_place_is_seen_where_places_alone_are_compared(name: str, second_order: Path) -> None:
    """Also without its edges."""
    expected, found = loaded(second_order), loaded(second_order)

    assert same(*places_alone(expected, found))
    assert not same(*places_alone(expected, changed(found, name)))


STEPS = """head
### `1. #0 MulBackward0`

  a.py:4  loss
  out  self → #1 MulBackward0
### `2. #1 MulBackward0`

  a.py:5  dropout
  saved  other
"""
PEAK = """Peak: 9.0 KiB (measured), a.py
  forward of step 1, aten.convolution
  a.py:4  x

at the peak, by kind
  temporary  9.0 KiB  100%

alive over time
  step 1: peak 9.0 KiB in forward, 17 B at its end

A sentence.
"""
SMALLER = PEAK.replace("9.0", "2.0")
SAVES = PEAK.replace("  temporary  9.0 KiB  100%", "  saved for backward  8.0 KiB  89%")
SAVES_LESS = SAVES.replace("9.0", "4.0").replace("8.0", "3.0")
TEXTS: dict[str, tuple[Leaving, str, str, str]] = {  # on the CPU, on the device, and there with something else
    "warning": (without(r"^warning: .*\n"), "warning: x\na\n", "a\n", "b\n"),
    "name": (alike("One", "Two"), "a One", "a Two", "a Three"),
    "rounding": (rounded(0.03), "a 1.00\nb 2", "a 1.02\nb 2", "a 1.05\nb 2"),
    "rounding of words": (rounded(0.03), "a 1.00", "a 1.01", "b 1.00"),
    "coarse exact numbers": (rounded(0.03, 1 / 256), "0x1.aa23p-2", "0x1.aa81p-2", "0x1.ba81p-2"),
    "order": (
        in_any_order,
        "head\n### `1. #0 A`\nx.py:1\n### `2. #1 B`\n",
        "head\n### `1. #3 B`\n### `2. #4 A`\nx.py:1\n",
        "head\n### `1. #3 B`\n### `2. #4 A`\nx.py:2\n",
    ),
    "dropout": (
        dropout_steps,
        STEPS,
        STEPS.replace("#1 Mul", "#1 NativeDropout").replace("saved  other", "saved  result1"),
        STEPS.replace("#1 Mul", "#1 NativeDropout").replace("a.py:5", "a.py:6"),
    ),
    "lines": (lines_of_program, "a  x.py:1  y\nb", "x.py:1  y\nx.py:1  y", "x.py:2  y"),
    "rows": (rows_in_any_order, "5 of 5 nodes ran\na 1\nb 2", "7 of 7 nodes ran\nb 2\na 1", "b 2\na 2"),
    "last step": (
        last_step,
        "  step 1: x\n  step 2: y\n",
        "  step 1: x\nThe program made 1 step; 2 were asked for.\n",
        "The program made 1 step; 2 were asked for.\n",
    ),
    "names": (names_in_any_order, "a.b, c and d stay", "d, a.b and c stay", "d, a.b and e stay"),
    "peaks": (peaks, PEAK, SMALLER, SMALLER.replace("17 B", "7.0 KiB")),
    "masks": (less_saved, SAVES, SAVES_LESS, SAVES_LESS.replace("4.0", "6.0")),
    "exact numbers": (rounded(0.03), "a 0x1.2182360000000p+2", "a 0x1.2182340000000p+2", "a 0x1.2192340000000p+2"),
    "peak": (peak_in(r"aten\.convolution"), PEAK, SMALLER, SMALLER.replace("A sentence", "Another")),
}


@pytest.mark.parametrize("name", TEXTS)
def test_what_else_a_text_says_stays(name: str) -> None:
    """What an entry is about is taken away."""
    leave, expected, found, wrong = TEXTS[name]
    verb = "fit" if name in {"peaks", "peak", "masks"} else "step"

    assert list(lines_that_differ(verb, (expected, found))) != []
    assert list(lines_that_differ(verb, leave(expected, found))) == []
    assert list(lines_that_differ(verb, leave(expected, wrong))) != []


def test_a_peak_elsewhere_stays() -> None:
    """Only that of the operators that are named is taken away, and only if the CPU has more."""
    left = peak_in(r"aten\.convolution")
    other = PEAK.replace("aten.convolution", "aten.mul")

    assert list(lines_that_differ("fit", left(other, SMALLER))) != []
    assert list(lines_that_differ("fit", left(SMALLER, PEAK))) != []


def test_a_capture_without_differences_stays(second_order: Path) -> None:
    """A rewriting adds nothing that differs, and can be read again."""
    capture = loaded(second_order)
    found = capture, json.loads(json.dumps(capture))
    for rewriting in REWRITINGS:
        found = rewriting(*found)

    assert same(*found)
    assert len(found[0]["graph"]["nodes"]) > 20
