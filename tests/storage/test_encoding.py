"""Graphs go into a capture file and come out the same; equal graphs give equal bytes."""

import gzip
import json

import msgspec
import pytest
from factories import gradient_stats, graph, leaf, op, product_plus_two
from hypothesis import HealthCheck, given, settings
from inline_snapshot import snapshot
from strategies import examples, graphs

from gradinspect.graph import Gradients, Graph, NodeGradients, SavedValue
from gradinspect.storage import decode_graph, encode_graph, encoding


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(graphs())
def test_round_trip(record: Graph) -> None:
    """Whatever a graph holds, it is the same after writing and reading, and writing again gives the same bytes."""
    for compressed in (False, True):
        content = encode_graph(record, compressed=compressed)
        again = decode_graph(content, "run.json")

        assert record == again
        assert content == encode_graph(again, compressed=compressed)


def test_the_file_is_ordinary_json_with_one_node_a_line() -> None:
    """Any JSON reader can read a capture file, and a change of one node is a change of one line."""
    record = product_plus_two()
    content = encode_graph(record, compressed=False)

    assert json.loads(content)["graph"]["nodes"] == json.loads(msgspec.json.encode(record.nodes))
    assert len([line for line in content.splitlines() if b"Backward0" in line]) == 3  # the third is `arguments`
    assert content.splitlines()[0] == snapshot(b'{"format":"gradinspect","version":1,"graph":{')


def test_order_of_arguments_does_not_matter() -> None:
    """Two equal graphs whose dicts were filled in another order give the same bytes."""
    first = graph(op("A"), arguments={"A": ("self",), "B": ("other",)})
    second = graph(op("A"), arguments={"B": ("other",), "A": ("self",)})
    expected = encode_graph(first, compressed=False)

    assert expected == encode_graph(second, compressed=False)


def test_the_gzip_header_tells_no_time_name_or_system() -> None:
    """A compressed file is the same on every day, under every name and on every system."""
    content = encode_graph(product_plus_two(), compressed=True)
    plain = encode_graph(product_plus_two(), compressed=False)

    assert content[3:10] == b"\x00" * 5 + b"\x00\xff"  # no name; no time; no level; system unknown
    assert plain == gzip.decompress(content)


def test_a_lone_surrogate_becomes_its_escape() -> None:
    """A file name that is not UTF-8 is written escaped, wherever it stands, instead of failing."""
    value = SavedValue(name="ctx.path", kind="str", value=("a\udcff", 1))
    record = graph(op("A", saved=(value,)), source="b\udcff.py", arguments={"\udc80": ("self",)})
    again = decode_graph(encode_graph(record, compressed=False), "run.json")

    assert (again.source, again.nodes[0].saved[0].value) == (r"b\udcff.py", (r"a\udcff", 1))
    assert list(again.arguments) == [r"\udc80"]


def test_what_is_written_in_pieces_is_the_same_as_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where one piece cannot be UTF-8 and another one has what must be escaped."""
    made = [
        op(name, 1 + place, saved=(SavedValue(name="x", kind="str", value=name),))
        for place, name in enumerate(("a", "b\udcff", "\u202e", "\x7f", "e"))
    ]
    record = graph(*made, leaf("w", 3))
    at_once = encode_graph(record, compressed=False)
    monkeypatch.setattr(encoding, "MAX_LINES", 2)

    assert encode_graph(record, compressed=False) == at_once
    assert gzip.decompress(encode_graph(record, compressed=True)) == at_once
    assert len(decode_graph(at_once, "run.json").nodes) == 6


@pytest.mark.parametrize("value", [-0.0, 5e-324, 1.0, 1, True, 2**63, -(2**63), "nan", "1", ""])
def test_values_keep_their_type(value: object) -> None:
    """A value comes back as the type it was: 1, 1.0, True and "1" stay apart."""
    record = graph(op("A", saved=(SavedValue(name="x", kind="object", value=value),)))  # type: ignore[arg-type]
    again = decode_graph(encode_graph(record, compressed=False), "run.json").nodes[0].saved[0].value

    assert repr(value) == repr(again)


def test_what_is_not_a_finite_number_is_kept_and_time_is_not() -> None:
    """A gradient file is looked at for exactly these; any JSON reader can read it; an old reader sees the graph."""
    ran = NodeGradients(node=0, order=0, incoming=(gradient_stats(float("inf"), bad=1),), outgoing=(None,), seconds=0.5)
    record = graph(op("A", None), gradients=Gradients(nodes=(ran,), weight_norms={0: float("inf")}, loss=float("nan")))
    content = encode_graph(record, compressed=False)
    again = decode_graph(content, "run.json").gradients
    assert again is not None
    written = json.loads(content, parse_constant=pytest.fail)

    assert written["gradients"]["loss"] == "nan"
    assert "gradients" not in written["graph"]
    assert repr(again.loss) == "nan"
    assert again.weight_norms == {0: float("inf")}
    assert again.nodes == (NodeGradients(node=0, order=0, incoming=ran.incoming, outgoing=(None,)),)
