"""Which capture files are equal for a comparison, without decoding them."""

from pathlib import Path

import pytest
from factories import two_layers
from msgspec.structs import replace

from gradinspect.graph import Frame, Graph, SavedValue, TensorInfo
from gradinspect.storage import comparable_digest, encode_graph, without_own_device


def digest_of(folder: Path, graph: Graph, *, compressed: bool = False) -> bytes | None:
    """Write a capture, and return its digest."""
    file = folder / "run.json"
    file.write_bytes(encode_graph(graph, compressed=compressed))
    return comparable_digest(file)


def test_equal_captures(tmp_path: Path) -> None:
    """What the program is called, where its lines are and how the file is packed makes no difference."""
    graph = two_layers()
    moved = tuple(replace(frame, file=f"other/{frame.file}", line=frame.line + 7) for frame in graph.frames)
    digest = digest_of(tmp_path, graph)

    assert digest is not None
    assert digest == digest_of(tmp_path, replace(graph, source="other.py", frames=moved, warnings=("odd",)))
    assert digest == digest_of(tmp_path, graph, compressed=True)


def test_different_captures(tmp_path: Path) -> None:
    """Any node, module, storage, text of a line or name of the model makes a difference."""
    graph = two_layers()
    others = (
        replace(graph, nodes=(replace(graph.nodes[0], sequence_nr=99), *graph.nodes[1:])),
        replace(graph, modules=(replace(graph.modules[0], class_name="Net"), *graph.modules[1:])),
        replace(graph, storages=(replace(graph.storages[0], num_bytes=1), *graph.storages[1:])),
        replace(graph, frames=(Frame(file="train.py", line=8, code="other()"), *graph.frames[1:])),
        replace(graph, model_name="net"),
    )

    assert len({digest_of(tmp_path, one) for one in (graph, *others)}) == len(others) + 1


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"format":"gradinspect","version":99,"graph":{}}', b"\x1f\x8b\x00"]
)
def test_what_is_not_a_capture(content: bytes, tmp_path: Path) -> None:
    """It has no digest, and neither has a file that does not exist."""
    file = tmp_path / "run.json"
    file.write_bytes(content)

    assert comparable_digest(file) is None
    assert comparable_digest(tmp_path / "missing.json") is None


def test_the_device_of_a_rank(tmp_path: Path) -> None:
    """Its number is no difference if it has one device of a type, also where a node has saved it."""
    digests = {}
    for name, (made_on, saved) in {"one": (1, 1), "other": (7, 7), "two": (1, 2)}.items():
        info = TensorInfo(shape=(2,), dtype="float32", device=f"cuda:{made_on}")
        value = SavedValue(name="_saved_device", kind="device", value=f"cuda:{saved}")
        node = replace(two_layers().nodes[0], forward_outputs=(info,), saved=(value,))
        graph = replace(two_layers(), nodes=(node, *two_layers().nodes[1:]))
        file = tmp_path / name
        file.write_bytes(encode_graph(graph, compressed=False))
        digests[name] = comparable_digest(file, are_ranks=True)

        assert (without_own_device(graph) == graph) == (name == "two")

    assert digests["one"] == digests["other"] != digests["two"]
