"""Running the command line on several ranks, each a process of its own, that share a gloo process group."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

GROUPS = Path(__file__).parent / "rank_groups.py"


class RankRun(NamedTuple):
    """One command on several ranks."""

    words: Sequence[str]  # after `gradinspect`
    num_ranks: int = 2
    folder: str = "."
    environment: Mapping[str, str] = {}  # "{rank}" in it is the rank


class Ended(NamedTuple):
    """How one rank ended."""

    code: int
    output: str
    errors: str


def on_ranks(runs: Sequence[RankRun]) -> list[list[Ended]]:
    """Run all commands, some at the same time; return how each rank of each has ended."""
    done = subprocess.run(
        [sys.executable, str(GROUPS)], input=json.dumps([run._asdict() for run in runs]), capture_output=True,
        text=True, timeout=600, check=True,
    )  # fmt: skip
    return [[Ended(*ended) for ended in ranks] for ranks in json.loads(done.stdout)]
