"""Every verb on several ranks: one report, captures of each rank, and a sentence about a rank in trouble."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from ranked import Ended, RankRun, on_ranks

from gradinspect.storage import read_graph

pytestmark = pytest.mark.slow

PROGRAM = str(Path(__file__).parent.parent / "rank_programs" / "train.py")
PIPELINE = str(Path(PROGRAM).with_name("pipeline.py"))
VERBS = {
    "saved": ("saved", PROGRAM, "--format", "csv"),
    "find": ("find", PROGRAM, "bytes>0"),
    "memory": ("memory", PROGRAM),
    "growth": ("memory", PROGRAM, "--iterations", "2"),
    "check": ("check", PROGRAM),
    "grads": ("grads", PROGRAM),
    "steps": ("grads", PROGRAM, "--steps", "2"),
    "step": ("step", PROGRAM),
    "fit": ("fit", PROGRAM, "--real", "--limit", "1B"),
}
TROUBLES = ("sleeps", "waits", "raises", "is-killed", "ends", "first-waits")


@pytest.fixture(scope="module")
def runs() -> dict[str, list[Ended]]:
    """Run all commands on two ranks, and one on four."""
    hanging = {"GRADINSPECT_RANKS_PATIENCE": "8"}
    with TemporaryDirectory() as folder:
        asked = {name: RankRun((*words, "--", "ddp"), folder=folder) for name, words in VERBS.items()}
        asked |= {
            name: RankRun(("trace", PROGRAM, "--depth", "0", "--", name, "stays"), 2, folder, hanging)
            for name in TROUBLES
        }
        asked["four"] = RankRun(("trace", PROGRAM, "--format", "json", "-o", "run.{rank}.json", "-o", "of-0.json", "--",
                                "skips"), 4, folder)  # fmt: skip
        asked["pipeline"] = RankRun(("export", PIPELINE, "-o", "stage.{rank}.json.gz"), 4, folder)
        asked["checked pipeline"] = RankRun(("check", PIPELINE), 2, folder)
        asked["differ"] = RankRun(("check", PROGRAM, "--", "nan"), folder=folder)
        asked["usage"] = RankRun(("trace", "absent.py"), folder=folder)
        asked["apart"] = RankRun(("trace", PROGRAM, "--depth", "0"), 2, folder,
                                {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "GROUP_RANK": "{rank}"})  # fmt: skip
        ended = dict(zip(asked, on_ranks(list(asked.values())), strict=True))
        on_ranks([RankRun(("trace", PROGRAM, "--", "ddp"), 2, folder)])  # removes what those left that were killed
        leaves = [[node.leaf.name for node in read_graph(Path(folder) / f"stage.{rank}.json.gz").nodes if node.leaf]
                  for rank in range(4)]  # fmt: skip
        ended["stages"] = [Ended(0, " ".join(sorted(filter(None, names))), "") for names in leaves]
        ended["files"] = [Ended(0, path.name, "") for path in sorted(Path(folder).glob("*.json"))]
        ended["left"] = [Ended(0, path.name, "") for path in Path(folder).glob("gradinspect-ranks-*/*")]
    return ended


def sentences(ended: Ended) -> list[str]:
    """List what we said on stderr, without warnings of torch."""
    return [line for line in ended.errors.splitlines() if line.startswith(("gradinspect: ", "note: "))]


@pytest.mark.parametrize("verb", VERBS)
def test_rank_0_reports_and_the_other_is_silent(verb: str, runs: dict[str, list[Ended]]) -> None:
    """Whatever the verb; what the program prints is its own."""
    first, second = runs[verb]

    assert first.output != ""
    assert set(second.output.splitlines()) <= {"rank 1 has trained"}
    assert sentences(second) == []
    assert first.code == (1 if verb == "fit" else 0)
    assert not any(line.startswith("gradinspect") for line in sentences(first))


def test_equal_ranks_are_said_to_be_equal(runs: dict[str, list[Ended]]) -> None:
    """One line says that they were compared."""
    assert sentences(runs["memory"][0]) == ["note: ranks 0-1 have the same graph"]


def test_four_ranks_leave_captures_and_rank_0_says_which_differs(runs: dict[str, list[Ended]]) -> None:
    """Files with {rank} are written by each, others by rank 0 alone; stdout remains JSON."""
    first, *others = runs["four"]

    assert [ended.output for ended in others] == ["", "", ""]
    assert json.loads(first.output)["nodes"] > 0
    assert sentences(first) == [
        "note: ranks 0-2 have the same graph",
        "note: rank 3 differs from rank 0: 3 nodes removed, 1 node changed, 2 leaves without a gradient now, "
        "1 module changed, has no extra",
    ]
    assert [ended.output for ended in runs["files"]] == ["of-0.json", *(f"run.{rank}.json" for rank in range(4))]


def test_stages_of_a_pipeline_that_need_each_other_are_all_recorded(runs: dict[str, list[Ended]]) -> None:
    """A stage that has recorded goes on until all have; parameters have their names."""
    assert [ended.code for ended in runs["pipeline"]] == [0, 0, 0, 0]
    assert sentences(runs["pipeline"][0])[0].startswith("note: ranks ")
    assert [ended.output for ended in runs["stages"]] == ["0.bias 0.weight"] * 4


def test_stages_of_a_pipeline_are_not_compared(runs: dict[str, list[Ended]]) -> None:
    """They compute different things, one waits for the other, and what they compute for shapes alone may be NaN."""
    assert [ended.code for ended in runs["checked pipeline"]] == [0, 0]
    assert runs["checked pipeline"][0].output.startswith("No problems found in ")


def test_rank_0_reports_what_only_another_rank_has_found(runs: dict[str, list[Ended]]) -> None:
    """The finding names the rank."""
    first, second = runs["differ"]

    assert "Found on rank 1 only." in " ".join(first.output.split())
    assert (first.code, second.code, second.output) == (1, 0, "")


def test_a_wrong_command_line_is_reported_once(runs: dict[str, list[Ended]]) -> None:
    """By rank 0."""
    first, second = runs["usage"]

    assert (first.code, second.code) == (2, 2)
    assert len(sentences(first)) == 1
    assert sentences(second) == []


def test_ranks_of_several_hosts_are_compared_where_they_share_a_folder(runs: dict[str, list[Ended]]) -> None:
    """The rank counts, not the one within the host."""
    first, second = runs["apart"]

    assert sentences(first) == ["note: ranks 0-1 have the same graph"]
    assert second.output == ""


def expected_troubles() -> Iterator[tuple[str, int, str]]:
    """Yield what a rank does, the exit code, and what is said of it."""
    yield "sleeps", 3, "gradinspect: Rank 1 hangs: for 8 s it has been at train.py:34, before any backward call."
    yield "waits", 3, "gradinspect: Rank 1 hangs: for 8 s it has been at train.py:36, in barrier(), before any"
    yield (
        "raises",
        3,
        "gradinspect: Rank 1: The script failed before any backward call: ValueError.",
    )
    yield "is-killed", 3, "gradinspect: Rank 1 died (killed?)"
    yield "ends", 2, "gradinspect: Rank 1 called no backward before its program ended"
    yield (
        "first-waits",
        3,
        "gradinspect: Rank 0 hangs: for 8 s it has been at train.py:44, in all_reduce(), before any backward",
    )


@pytest.mark.parametrize(("mode", "code", "start"), list(expected_troubles()), ids=TROUBLES)
def test_a_rank_in_trouble_is_named(mode: str, code: int, start: str, runs: dict[str, list[Ended]]) -> None:
    """With what it did last; nothing waits forever, and what rank 0 has recorded is shown."""
    first, second = runs[mode]

    (said,) = sentences(first)

    assert re.sub(r"for \d+ s", "for 8 s", said).startswith(start)  # a busy machine looks later
    assert first.code == code
    assert ("backward #1" in first.output) == (mode != "first-waits")
    assert sentences(second) == []


def test_nothing_is_left(runs: dict[str, list[Ended]]) -> None:
    """The folder in which they met is gone; where ranks were killed, the next run removes it."""
    assert runs["left"] == []
