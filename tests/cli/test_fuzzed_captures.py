"""Damaged and hostile capture files, through every verb that reads one: `benchmarks/fuzz_captures.py`, shortened."""

import subprocess
import sys
from pathlib import Path

import pytest
from capture_mutations import TEXTS, base_graph, mutated, problems, run
from factories import graph, leaf, op
from msgspec.structs import replace
from runs import unmeasured
from turns import one_in

from gradinspect.graph import Frame, Graph
from gradinspect.storage import encode_graph

pytestmark = pytest.mark.slow

LIMITED = """
import resource, sys
import gradinspect.cli, gradinspect.storage, gradinspect.renderers.terminal.trees.tree
import gradinspect.renderers.terminal.summary
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
limit = used + int(sys.argv[1]) * 1024**2
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
sys.exit(gradinspect.cli.main(["trace", "run.json"]))
"""
FIRST, COUNT, BATCH = 20_000, 16, 8  # numbers that the long run does not take


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in a folder of its own, at 80 columns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


def named(text: str) -> Graph:
    """Use a text as the name of everything that has one."""
    record = base_graph()
    nodes = tuple(
        replace(node, name=text, function=text, saved=tuple(replace(value, name=text) for value in node.saved))
        if node.leaf is None
        else replace(node, leaf=replace(node.leaf, name=text, aliases=(text,)))
        for node in record.nodes
    )
    return replace(
        record,
        nodes=nodes,
        source=text,
        torch_version=text,
        frames=tuple(
            Frame(file=text, line=frame.line, function=text, code=text, caller=frame.caller) for frame in record.frames
        ),
        modules=tuple(replace(call, path=text, class_name=text) for call in record.modules),
        roots=tuple(replace(root, name=text) for root in record.roots),
        storages=tuple(replace(storage, name=text) for storage in record.storages),
        arguments={text: (text, text)},
        warnings=(text,),
    )


@pytest.mark.parametrize("place", one_in(2, range(len(TEXTS))))
def test_a_hostile_name_is_only_text(place: int) -> None:
    """In every format of every verb: no escape, no markup, and what is written can be read."""
    assert problems(encode_graph(named(TEXTS[place]), compressed=False), place) == []


@pytest.mark.parametrize("first", range(FIRST, FIRST + COUNT, BATCH))
def test_damaged_files_are_read_or_refused(first: int) -> None:
    """Each ends with 0, 1 or 2, and one sentence at most."""
    assert [problem for number in range(first, first + BATCH) for problem in problems(mutated(number), number)] == []


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such limit")
def test_too_little_memory_is_one_sentence() -> None:
    """Under a limit as `ulimit -v` sets, a graph that does not fit is refused, without a traceback or a crash.

    A tracer of coverage that gets no memory may end in a segmentation fault, so there is none.
    """
    nodes = (op("SinBackward0", number + 1) for number in range(60_000))
    Path("run.json").write_bytes(encode_graph(graph(*nodes, leaf("w", 2)), compressed=False))
    ends = []
    for num_mib in (4, 16, 16, 16, 24, 32, 40, 800):
        command = [sys.executable, "-c", LIMITED, str(num_mib)]
        run = subprocess.run(command, capture_output=True, text=True, check=False, env=unmeasured())
        ends.append((run.returncode, run.stderr.partition(".")[0]))

    assert ends == [(2, "gradinspect: Not enough memory")] * 7 + [(0, "")]


def test_what_is_looked_for_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of ours, and a character that a terminal obeys, are told."""
    Path("run.json").write_bytes(encode_graph(base_graph(), compressed=False))

    def fail(*_: object, **__: object) -> None:
        print("\x1b]52;c;x")
        raise KeyError("a")

    monkeypatch.setattr("gradinspect.cli.saved.report_on", fail)

    assert run("saved", "run.json") == ["exit code 4", "stdout has '\\x1b]52;c;x'"]
    assert run("trace", "run.json") == []
