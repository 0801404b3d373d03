"""Files that are broken, foreign or hostile get one sentence with the place, and nothing in them runs."""

import gzip
import json
import pickle
import re
from typing import Any

import pytest
from factories import graph, leaf, op, product_plus_two
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot
from strategies import examples

from gradinspect.errors import GradInspectError
from gradinspect.graph import Frame, ModuleCall
from gradinspect.storage import decode_graph, encode_graph

CONTENT = encode_graph(product_plus_two(), compressed=False)
COMPRESSED = encode_graph(product_plus_two(), compressed=True)
INFO = {"shape": [2], "dtype": "float32"}
LEAF = {"info": INFO, "kind": "parameter"}
TENSOR = {"info": INFO, "num_bytes": 8}
NO_JSON = '"run.json" is not a capture file: it is not JSON.'
OTHER_JSON = '"run.json" is not a capture file: it is JSON of another kind.'
DAMAGED = 'Capture file "run.json" is damaged: it cannot be unpacked.'
BROKEN = 'Capture file "run.json" is broken:'
HEAD = b'{"format":"gradinspect","version":%d,"graph":'


def error_message(content: bytes, *, max_bytes: int = 10**6) -> str:
    """Read bytes that must be refused; return the sentence without its hint."""
    with pytest.raises(GradInspectError) as caught:
        decode_graph(content, "run.json", max_bytes=max_bytes)
    assert caught.value.hint
    return caught.value.message


def changed(place: str, value: object) -> bytes:
    """Write a valid capture file after setting one place of its graph, such as `nodes[0].frame`."""
    envelope = json.loads(CONTENT)
    envelope["graph"]["modules"] = [{"path": "", "class_name": "Net"}, {"path": "fc", "class_name": "Fc", "parent": 0}]
    envelope["graph"]["frames"] = [{"file": "train.py", "line": 1}, {"file": "train.py", "line": 2, "caller": 0}]
    envelope["graph"]["nodes"][0]["saved"][0]["held_storages"] = [0]
    envelope["graph"]["nodes"][0]["saved"][0]["tensor"]["strides"] = [1]
    *steps, last = [int(step) if step.isdigit() else step for step in re.findall(r"\w+", place)]
    record = envelope["graph"]
    for step in steps:
        record = record[step]
    record[last] = value
    return json.dumps(envelope).encode()


class Bomb:
    """Fails the test if anything unpickles it."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Ask the unpickler to run code."""
        return exec, ("raise AssertionError('a pickle was run')",)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", NO_JSON),
        (b"\x89PNG\r\n\x1a\n\0\0", NO_JSON),
        (pickle.dumps(Bomb()), NO_JSON),
        (b"import torch\n", NO_JSON),
        (b'{"name": "npm"}', OTHER_JSON),
        (b"[1, 2]", OTHER_JSON),
        (b"[" * 10**5, OTHER_JSON),
        (HEAD % 0 + b"{}}", OTHER_JSON),
        (
            (HEAD % 1).replace(b"gradinspect", b"\\u001b") + b"{}}",
            r'"run.json" is not a capture file: its format is "\x1b".',
        ),
        (HEAD % 7 + b'{"more":1}}', 'Capture file "run.json" has schema version 7, newer than 1.'),
        (HEAD % 1 + b"[" * 10**5, f"{BROKEN} it is nested too deeply."),
        (CONTENT[:900], f"{BROKEN} it is truncated."),
        (CONTENT[:100] + b"\1" + CONTENT[101:], f"{BROKEN} it is not JSON at byte 100."),
        (CONTENT + b"x", f"{BROKEN} it is not JSON at byte {len(CONTENT) + 1}."),
        (COMPRESSED[:200], 'Capture file "run.json" is truncated: its gzip stream has no end.'),
        (COMPRESSED[:60] + b"\xff\0\xff" + COMPRESSED[63:], DAMAGED),
        (CONTENT.replace(b"train.py", b"\xff"), 'Capture file "run.json" is not valid at graph: it is not UTF-8.'),
    ],
)
def test_what_is_no_capture_file(content: bytes, expected: str) -> None:
    """Each kind of broken or foreign file has its own sentence."""
    assert expected == error_message(content)


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        ("nodes[0].next_edges[1].next_node", 99, "99 is not a node"),
        ("nodes[0].next_edges[1].next_node", -1, "-1 is not a node"),
        ("nodes[1].next_edges[0].next_node", 1, "1 does not come after 1"),
        ("nodes[1].next_edges[0].next_node", 0, "0 does not come after 1"),
        ("nodes[0].next_edges[0].input_nr", -1, "-1 is not a position"),
        ("nodes[0].next_edges[0].input_nr", 2**40, "1099511627776 is not a position"),
        ("nodes[0].forward_outputs[0].shape[0]", -1, "-1 is not a size"),
        ("nodes[0].module", 2, "2 is not a module"),
        ("nodes[0].frame", 2, "2 is not a frame"),
        ("nodes[0].leaf", LEAF, "a node of kind generated has no leaf"),
        ("nodes[2].leaf", None, "a node of kind accumulate_grad needs a leaf"),
        ("nodes[2].leaf.storage", 2, "2 is not a storage"),
        ("nodes[1].saved[0].tensor", TENSOR, "a value of kind int has no tensor"),
        ("nodes[0].saved[0].index", -1, "-1 is not a position"),
        ("nodes[0].saved[0].held_storages[0]", 2, "2 is not a storage"),
        ("nodes[0].saved[0].tensor.storage", -1, "-1 is not a storage"),
        ("nodes[0].saved[0].tensor.made_by", 3, "3 is not a node"),
        ("nodes[0].saved[0].tensor.num_bytes", -4, "-4 is not a count"),
        ("nodes[0].saved[0].tensor.strides[0]", -1, "-1 is not a size"),
        ("storages[0].num_bytes", -1, "-1 is not a count"),
        ("storages[0].num_bytes", 10**30, f"{10**30} is not a count"),
        ("modules[0].parent", 1, "1 does not come before 0"),
        ("modules[1].parent", 1, "1 does not come before 1"),
        ("frames[1].caller", -1, "-1 does not come before 1"),
        ("captured_at.frame", 2, "2 is not a frame"),
        ("roots[0].node", 3, "3 is not a node"),
        ("roots[0].output_nr", -1, "-1 is not a position"),
        ("roots[0].info.shape[0]", 2**63, f"{2**63} is not a size"),
        ("nodes[0].kind", "evil", "Invalid enum value 'evil'"),
        ("nodes[0].name", 7, "Expected `str`, got `int`"),
        ("source", ["\x1b"], "Expected `str`, got `array`"),
    ],
)
def test_what_is_no_valid_graph(place: str, value: object, reason: str) -> None:
    """A record that cannot be true is refused with the place of what is wrong."""
    message = error_message(changed(place, value))

    assert message == f'Capture file "run.json" is not valid at graph.{place}: {reason}.'


@pytest.mark.parametrize(
    ("compilation", "place", "reason"),
    [
        ({"num_graphs": -1}, "num_graphs", "-1 is not a count"),
        ({"num_graphs": 1, "breaks": [{"reason": "x", "frame": 2}]}, "breaks[0].frame", "2 is not a frame"),
        (
            {"num_graphs": 1, "recompiles": [{"function": "f", "reason": "x", "count": -2}]},
            "recompiles[0].count",
            "-2 is not a count",
        ),
    ],
)
def test_what_is_no_valid_compilation(compilation: object, place: str, reason: str) -> None:
    """Lines and counts of what torch.compile did are checked too."""
    message = error_message(changed("compilation", compilation))

    assert message == f'Capture file "run.json" is not valid at graph.compilation.{place}: {reason}.'


STATS = {"shape": [2], "dtype": "float32", "norm": 1, "max_abs": "nan", "mean": 0, "num_zeros": 0, "num_nonfinite": 1,
         "num_elements": 2}  # fmt: skip


@pytest.mark.parametrize(
    ("gradients", "place", "reason"),
    [
        ({"nodes": [{"node": 3, "order": 0, "incoming": []}]}, ".nodes[0].node", "3 is not a node"),
        ({"nodes": [{"node": -1, "order": 0, "incoming": []}]}, ".nodes[0].node", "-1 is not a node"),
        ({"nodes": [{"node": 1, "order": 0, "incoming": []}] * 2}, ".nodes[1].node", "1 does not come after 1"),
        ({"nodes": [{"node": 1, "order": -1, "incoming": []}]}, ".nodes[0].order", "-1 is not a count"),
        (
            {"nodes": [{"node": 1, "order": 0, "incoming": [{**STATS, "num_zeros": -1}]}]},
            ".nodes[0].incoming[0].num_zeros",
            "-1 is not a count",
        ),
        (
            {"nodes": [{"node": 1, "order": 0, "incoming": [], "outgoing": [None, {**STATS, "shape": [-1]}]}]},
            ".nodes[0].outgoing[1].shape[0]",
            "-1 is not a size",
        ),
        ({"nodes": [], "weight_norms": {"9": 1.0}}, ".weight_norms", "9 is not a node"),
        ({"nodes": [], "weight_norms": {"1": -1.0}}, ".weight_norms[1]", "-1.0 is not a norm"),
        (
            {"nodes": [{"node": 1, "order": 0, "incoming": [{**STATS, "norm": -2}]}]},
            ".nodes[0].incoming[0].norm",
            "-2.0 is not a norm",
        ),
        ({"nodes": [], "loss": "high"}, ".loss", "Expected `float | null`, got `str`"),
        ({"nodes": [], "evil": 1}, "", "Object contains unknown field `evil`"),
    ],
)
def test_what_is_no_valid_gradient(gradients: object, place: str, reason: str) -> None:
    """What flowed back is checked against the graph that it flowed through."""
    message = error_message(json.dumps({**json.loads(CONTENT), "gradients": gradients}).encode())

    assert message == f'Capture file "run.json" is not valid at gradients{place}: {reason}.'


@pytest.mark.parametrize(("field", "place"), [("nodes[0].evil", "graph.nodes[0]"), ("evil", "graph")])
def test_an_unknown_field(field: str, place: str) -> None:
    """A field that the record does not have is refused, in a node and in the graph itself."""
    message = error_message(changed(field, 7))

    assert message == f'Capture file "run.json" is not valid at {place}: Object contains unknown field `evil`.'


def test_the_unchanged_file_is_valid() -> None:
    """The tests above refuse what they changed, not what they started from."""
    record = decode_graph(changed("source", "train.py"), "run.json")

    assert record.modules == (
        ModuleCall(path="", class_name="Net"),
        ModuleCall(path="fc", class_name="Fc", parent=0),
    )
    assert record.frames == (Frame(file="train.py", line=1), Frame(file="train.py", line=2, caller=0))


def test_a_class_with_too_many_arguments_is_refused() -> None:
    """No operator of torch has a tenth as many."""
    record = graph(op("A"), arguments={"A": ("self",) * 1001})

    with pytest.raises(GradInspectError, match="1001 arguments are too many"):
        decode_graph(encode_graph(record, compressed=True), "run.json")


def test_a_gzip_bomb_is_refused() -> None:
    """A small file that unpacks to a huge one is given up at the limit, which the sentence names."""
    bomb = gzip.compress(b"{" + b" " * 10**7)

    assert error_message(bomb, max_bytes=1024**2) == snapshot(
        '"run.json" holds more than 1.0 MiB, the size limit of a capture file.'
    )
    assert "1.0 KiB" in error_message(CONTENT * 2, max_bytes=1024)


def test_a_name_with_hidden_characters_comes_back() -> None:
    """A capture is printable as text, and what is not printable in a name is the same when it is read."""
    record = graph(op("\x1b]52;\x7f\x9b\u202e\U000e0001\ufe0fé重", 1), leaf("w", 2))
    content = encode_graph(record, compressed=False)

    assert record == decode_graph(content, "run.json")
    assert all(line.isprintable() and "\ufe0f" not in line for line in content.decode().splitlines())


def test_a_hostile_name_or_value_does_not_reach_the_terminal() -> None:
    """What the file and its name say is shown without control characters, and not at length."""
    content = CONTENT.replace(b'"name":', b'"\\u001b[2J' + b"x" * 10**5 + b'":1,"name":')
    with pytest.raises(GradInspectError) as caught:
        decode_graph(content, "\x1b]0;run.json")

    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500


@settings(max_examples=examples(150), deadline=None)
@given(st.data())
def test_damaged_bytes_never_crash(data: st.DataObject) -> None:
    """Whichever byte of a file is damaged or lost, it is read or refused with our own error."""
    content = data.draw(st.sampled_from([CONTENT, COMPRESSED]))
    position = data.draw(st.integers(0, len(content) - 1))
    damaged = content[:position] + data.draw(st.binary(max_size=3)) + content[position + 1 :]
    try:
        record = decode_graph(damaged, "run.json", max_bytes=10**6)
    except GradInspectError as error:
        assert error.message  # noqa: PT017  # either outcome is right; nothing else may be raised
    else:
        assert record == decode_graph(encode_graph(record, compressed=False), "run.json")
