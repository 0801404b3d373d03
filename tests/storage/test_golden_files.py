"""Capture files as earlier releases wrote them: each is read, and says what it said then. None is written anew."""

import gzip
import json
from pathlib import Path

import pytest

from gradinspect.analyses.memory.held import measure_memory
from gradinspect.errors import GradInspectError
from gradinspect.storage import SCHEMA_VERSION, decode_graph, encode_graph

FOLDER = Path(__file__).parent.parent / "golden"
SAID = {  # nodes, bytes held, gradients of parameters, nodes with fingerprints of values
    "before-0.1.0-checkpointed.json.gz": (46, 20544, 0, 0),
    "before-0.1.0-gradients.json.gz": (16, 19716, 16, 0),
    "0.1.0-gradients.json.gz": (249, 3272228, 249, 0),
    "0.1.0-values.json.gz": (318, 189060, 0, 318),
}


def said(name: str) -> tuple[int, int, int, int]:
    """Read a file, and count."""
    graph = decode_graph((FOLDER / name).read_bytes(), name)
    gradients = 0 if graph.gradients is None else len(graph.gradients.nodes)
    return len(graph.nodes), measure_memory(graph).extra_bytes, gradients, len(graph.values)


def test_every_file_is_listed() -> None:
    """A file that no test reads promises nothing."""
    assert {path.name for path in FOLDER.iterdir()} == set(SAID)


@pytest.mark.parametrize("name", SAID)
def test_a_file_says_what_it_said(name: str) -> None:
    """Nodes, bytes, gradients and values are all there, and are written again as they are."""
    graph = decode_graph((FOLDER / name).read_bytes(), name)

    assert said(name) == SAID[name]
    assert decode_graph(encode_graph(graph, compressed=False), name) == graph


def test_what_a_later_release_adds_is_named() -> None:
    """A figure that is passed over in silence would make the others wrong."""
    name = "0.1.0-values.json.gz"
    document = json.loads(gzip.decompress((FOLDER / name).read_bytes()))
    document["graph"]["nodes"][7]["added_later"] = 1

    assert document["version"] == SCHEMA_VERSION
    with pytest.raises(
        GradInspectError, match=r"not valid at graph.nodes\[7\]: Object contains unknown field `added_later`"
    ):
        decode_graph(json.dumps(document).encode(), name)
