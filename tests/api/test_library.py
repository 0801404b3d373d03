"""The torch-free half of the library: files, the figures of a graph, other libraries' objects."""

import pickle
import subprocess
import sys
from pathlib import Path

import networkx  # type: ignore[import-untyped]
import pytest
from factories import product_plus_two, two_layers

import gradinspect as gi
from gradinspect.api import converting


def test_a_graph_is_saved_and_loaded(tmp_path: Path) -> None:
    """Unchanged, and in each format by its suffix; an existing file stays unless it is asked for."""
    graph, file = product_plus_two(), tmp_path / "run.json.gz"
    gi.save(graph, file)
    gi.save(graph, tmp_path / "graph.dot", depth=1)

    assert gi.load(file) == graph
    assert (tmp_path / "graph.dot").read_text().startswith("digraph")
    with pytest.raises(gi.GradInspectError, match="Pass overwrite=True"):
        gi.save(graph, file)
    gi.save(graph, file, overwrite=True)


def test_an_unknown_suffix_lists_the_known_ones(tmp_path: Path) -> None:
    """Nothing is written."""
    with pytest.raises(gi.GradInspectError, match=r"Supported extensions: \.html"):
        gi.save(product_plus_two(), tmp_path / "graph.jpeg")
    assert list(tmp_path.iterdir()) == []


def test_a_graph_prints_well() -> None:
    """In one line as a value, as the tree when printed."""
    graph = product_plus_two()

    assert repr(graph).startswith("<Graph of ")
    assert len(repr(graph)) < 120
    assert str(graph) == gi.tree(graph)
    assert "AddBackward0" in gi.tree(graph)


def test_a_graph_becomes_a_networkx_graph() -> None:
    """Every node and every edge that is not None, with positions."""
    graph = product_plus_two()
    made = graph.to_networkx()
    edges = [edge for node in graph.nodes for edge in node.next_edges if edge is not None]

    assert isinstance(made, networkx.MultiDiGraph)
    assert [made.nodes[number]["name"] for number in range(len(graph.nodes))] == [node.name for node in graph.nodes]
    assert made.number_of_edges() == len(edges)


def test_a_library_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the line that installs it."""
    monkeypatch.setitem(sys.modules, "polars", None)

    with pytest.raises(gi.GradInspectError, match=r"'polars' is not installed\. Install it: pip install polars"):
        converting.to_polars(product_plus_two())


def test_importing_the_package_loads_nothing() -> None:
    """Neither torch nor what parses captures; each name is imported on first use."""
    done = subprocess.run(
        [sys.executable, "-c", "import sys; before = set(sys.modules); import gradinspect\n"
         "print(sorted(name for name in set(sys.modules) - before if name.partition('.')[0] != 'encodings'))\n"
         "gradinspect.load; assert 'torch' not in sys.modules"],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip

    assert done.stdout == "['gradinspect', 'gradinspect.methods', 'gradinspect.own_builtins']\n", done.stderr
    assert done.returncode == 0, done.stderr


def test_a_record_shows_itself_wherever_it_comes_from(tmp_path: Path) -> None:
    """It knows its methods in a process that has only unpickled it."""
    (tmp_path / "graph").write_bytes(pickle.dumps(product_plus_two()))
    program = "import pickle, sys; graph = pickle.load(open(sys.argv[1], 'rb')); print(len(graph.find()), repr(graph))"
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "graph"], capture_output=True, text=True, check=True
    )

    assert done.stdout == f"{len(product_plus_two().nodes)} {product_plus_two()!r}\n"


def test_two_graphs_are_compared() -> None:
    """In the words of the command line; equal ones are empty."""
    before, after = product_plus_two(), two_layers()
    found = gi.diff(before, after)

    assert gi.diff(before, before).is_empty
    assert not found.is_empty
    assert repr(found).startswith("<GraphDiff: ")
    assert "6 nodes added, 2 nodes removed" in str(found)
    assert "6 nodes added" in found._repr_html_()
