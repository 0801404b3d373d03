"""Import one of torch's test files once, then run its tests in forks of this process, plain or under a verb.

`python torch_test_server.py JOB.json`; torch_tests.py writes the job and reads the outcomes. A fork a test: each test
is then the program whose first backward call is captured, one that hangs or kills its process takes no other along, and
nearly all that a process costs, which is importing torch, is paid once.
"""

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import random
import re
import runpy
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from torch_test_one import tests_of

PROGRAM = Path(__file__).parent / "torch_test_one.py"
OPTIONAL = ("gradinspect.explorer", "gradinspect.trainers.", "gradinspect.pytest_plugin", "gradinspect.notebook")
OURS = re.compile(r'File "[^"]*/gradinspect/[^"]*", line \d+')


def import_file(file: Path) -> ModuleType:
    """Import a test file by its bare name, from its own folder, with a command line that has nothing for it."""
    sys.argv = [str(file)]
    sys.path[:0] = [str(file.parent), str(file.parent.parent)]
    os.chdir(file.parent)
    return importlib.import_module(file.stem)


def import_gradinspect() -> None:
    """Import what each fork would import again; not what needs packages that are not installed with us."""
    package = importlib.import_module("gradinspect")
    for found in pkgutil.walk_packages(package.__path__, "gradinspect."):
        if not found.name.endswith("__main__") and not found.name.startswith(OPTIONAL):
            importlib.import_module(found.name)


def run_group(names: list[str], job: dict[str, Any]) -> dict[str, Any]:
    """Run tests in one fork, and return how each ended, what it cost and what was printed of ours."""
    with tempfile.TemporaryDirectory() as folder:
        outcomes, said = Path(folder) / "outcomes", Path(folder) / "said"
        outcomes.touch()
        pid = os.fork()
        if pid == 0:
            _be_program(job["file"], outcomes, said, names, job["words"])
        status, cpu_s, is_late = _wait(pid, job["limit_s"] * (len(names) if job["together"] else 1))
        ended = _read(outcomes)
        if is_late or os.WIFSIGNALED(status):
            ended = ended or dict.fromkeys(names[:1])
            how = "ran out of time" if is_late else f"killed by signal {os.WTERMSIG(status)}"
            ended = {name: how if outcome is None else outcome for name, outcome in ended.items()}
        text = said.read_text(errors="replace")
    is_ours = bool(words_of(text)) and OURS.search(text) is not None
    return {"outcomes": ended, "cpu_s": cpu_s, "ours": text[-6000:] if is_ours else ""}


def words_of(text: str) -> str:
    """Return what was printed from a traceback on, if there is one."""
    return text[text.find("Traceback (most") :] if "Traceback (most" in text else ""


def _be_program(file: str, outcomes: Path, said: Path, names: list[str], words: list[str]) -> NoReturn:
    """Be `python torch_test_one.py ...`, or `gradinspect VERB torch_test_one.py ...`."""
    code = 0
    try:
        stream = os.open(said, os.O_WRONLY | os.O_CREAT)
        os.dup2(stream, 1)
        os.dup2(stream, 2)
        arguments = [file, str(outcomes), *names]
        if words:
            from gradinspect.cli import main  # noqa: PLC0415  # the plain run must not have it

            verb, *options = words
            code = main([verb, str(PROGRAM), *options, "--", *arguments])
        else:
            sys.argv = [str(PROGRAM), *arguments]
            runpy.run_path(str(PROGRAM), run_name="__main__")
    except BaseException:  # what is ours to mend is printed, and found there
        traceback.print_exc()
        code = 70
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    os._exit(code)


def _wait(pid: int, limit_s: float) -> tuple[int, float, bool]:
    """Wait for a child; one that is late is killed. Returns its status, its CPU seconds, and whether it was late."""
    end, pause = time.monotonic() + limit_s, 0.002
    is_late = False
    while True:
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done:
            return status, usage.ru_utime + usage.ru_stime, is_late
        if time.monotonic() > end and not is_late:
            is_late = True
            os.kill(pid, signal.SIGKILL)
        time.sleep(pause)
        pause = min(0.05, pause * 1.2)


def _read(outcomes: Path) -> dict[str, str | None]:
    ended: dict[str, str | None] = {}
    for line in outcomes.read_text().splitlines():
        entry = json.loads(line)
        ended[entry["test"]] = entry["outcome"]
    return ended


def chosen(names: list[str], job: dict[str, Any]) -> list[str]:
    """Choose tests: those that are named, or that match, of this shard."""
    if job["tests"] is not None:
        return [name for name in names if name in set(job["tests"])]
    number, of = job["shard"]
    found = [name for name in names if re.search(job["match"], name)]
    random.Random(0).shuffle(found)  # so that a shard has something of everything
    return sorted(found[number - 1 :: of])


def main(path: str) -> None:
    """Do one job."""
    job = json.loads(Path(path).read_text())
    module = import_file(Path(job["file"]))
    if job["words"]:
        import_gradinspect()
    names = chosen(list(tests_of(module)), job)
    gc.freeze()  # so that a fork's collector does not copy all of torch's objects
    with Path(job["out"]).open("w", buffering=1) as out:
        todo = [names] if job["together"] else [[name] for name in names]
        while todo and todo[0]:
            ended = run_group(todo[0], job)
            out.write(json.dumps(ended) + "\n")
            left = [name for name in todo[0] if name not in ended["outcomes"]]
            todo[:1] = [left] if job["together"] and ended["outcomes"] and left else []


if __name__ == "__main__":
    main(sys.argv[1])
