"""What a program does to files is undone: whatever it does, in which order and process, and if it is killed."""

import hashlib
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from runs import gradinspect

RANDOM_CALLS = """
import os, random, shutil, sqlite3, sys
from pathlib import Path
from gradinspect.kept_files import run
from gradinspect.kept_files.problems import problems

NAMES = ["a", "b", "d/a", "d/b", "d/e/a", "f/a"]
FOLDERS = ["d", "d/e", "f", "g"]

def write(draw):
    with open(draw.choice(NAMES), draw.choice(["w", "a", "r+", "x", "w+"])) as file:
        file.write("made up")

def raw(draw):
    descriptor = os.open(draw.choice(NAMES), os.O_RDWR | draw.choice([0, os.O_CREAT, os.O_TRUNC]))
    os.write(descriptor, b"raw")
    os.close(descriptor)

def forked(draw):
    if not (pid := os.fork()):
        try:
            draw.choice(CALLS[:-1])(draw)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)

CALLS = [
    write, write, write, raw,
    lambda draw: os.remove(draw.choice(NAMES)),
    lambda draw: os.replace(draw.choice(NAMES), draw.choice(NAMES)),
    lambda draw: os.rename(draw.choice(FOLDERS), draw.choice(FOLDERS)),
    lambda draw: shutil.move(draw.choice(NAMES + FOLDERS), draw.choice(NAMES)),
    lambda draw: shutil.copy2(draw.choice(NAMES), draw.choice(NAMES)),
    lambda draw: os.mkdir(draw.choice(FOLDERS)),
    lambda draw: os.rmdir(draw.choice(FOLDERS)),
    lambda draw: shutil.rmtree(draw.choice(FOLDERS)),
    lambda draw: shutil.copytree(draw.choice(FOLDERS), draw.choice(FOLDERS), dirs_exist_ok=True),
    lambda draw: os.link(draw.choice(NAMES), draw.choice(NAMES)),
    lambda draw: os.symlink(draw.choice(["a", "d/a", "nowhere"]), draw.choice(NAMES)),
    lambda draw: os.truncate(draw.choice(NAMES), 2),
    lambda draw: os.chmod(draw.choice(NAMES), 0o600),
    lambda draw: os.utime(draw.choice(NAMES)),
    lambda draw: Path(draw.choice(NAMES)).write_text("by pathlib"),
    forked,
]

def state():
    found = {}
    for folder, folders, files in os.walk("."):
        for name in folders + files:
            path = os.path.join(folder, name)
            status = os.lstat(path)
            content = os.readlink(path) if os.path.islink(path) else name in files and Path(path).read_bytes()
            times = None if os.path.isdir(path) else status.st_mtime_ns
            found[path] = status.st_mode, status.st_ino, status.st_nlink, times, content
    return found

run.begin()
num_changed = 0
for seed in range(int(sys.argv[1])):
    root, draw = Path(f"{seed}"), random.Random(seed)
    root.mkdir()
    os.chdir(root)
    for folder in FOLDERS[:-1]:
        Path(folder).mkdir()
    for name in NAMES:
        if draw.random() < 0.6:
            Path(name).write_text(f"the original of {name}")
            os.utime(name, ns=(10**18 + seed, 10**18 + seed))
    before = state()
    with run.kept():
        for _ in range(12):
            try:
                draw.choice(CALLS)(draw)
            except (OSError, shutil.Error):
                pass
        num_changed += state() != before
    run.put_back()
    assert state() == before, (seed, {k: (before.get(k), state().get(k)) for k in {*before, *state()}})
    assert problems() == (), seed
    os.chdir("..")
assert num_changed > int(sys.argv[1]) // 2, num_changed
print("done")
"""

PROGRAM = """
import os, sqlite3, sys, threading, time
import torch
model = torch.nn.Linear(3, 1)
log = open("log.csv", "w")
for step in range(3):
    loss = model(torch.ones(2, 3)).sum()
    loss.backward()
    print(loss.item(), file=log, flush=True)
    with open("losses.txt", "a") as file:
        file.write(f"{loss.item()}\\n")
    torch.save({"step": step}, "meta.pt")
    assert torch.load("meta.pt") == {"step": step}
    with sqlite3.connect("study.db") as study:
        study.execute("create table if not exists losses (value real)")
        study.execute("insert into losses values (?)", (loss.item(),))
    os.makedirs("runs/new", exist_ok=True)
    open("runs/new/state.txt", "w").close()
    print("step", flush=True)
    time.sleep(float(sys.argv[1]))
"""


def _digests(folder: Path) -> dict[str, tuple[str, int, int]]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts)
    return {
        str(path.relative_to(folder)): (
            hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns, path.stat().st_ino,
        )
        for path in files
    }  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of a program, with results of earlier runs."""
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "runs").mkdir()
    for name in ("log.csv", "losses.txt", "meta.pt", "runs/old.txt"):
        (tmp_path / name).write_text(f"the result of days: {name}")
    return tmp_path


@pytest.mark.parametrize("times", [12, pytest.param(150, marks=pytest.mark.slow)])
def test_random_calls_are_undone(tmp_path: Path, times: int) -> None:
    """Contents, names, links, modes, times and numbers of files are those of before, after any twelve calls."""
    (tmp_path / "calls.py").write_text(RANDOM_CALLS)
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "calls.py", str(times)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout == "done\n", done.stderr
    assert not [*tmp_path.glob("**/.gradinspect-kept-*"), *tmp_path.glob("gradinspect-kept-*/*.journal")]


@pytest.mark.parametrize(
    "verb", ["fit", *(pytest.param(verb, marks=pytest.mark.slow) for verb in ("memory --fake", "plan --fit 1KiB"))]
)
def test_files_of_a_program_are_put_back(folder: Path, verb: str) -> None:
    """The program reads what it has written, and its files are those of before when the command has ended."""
    before = _digests(folder)
    done = gradinspect(*verb.split(), "train.py", "--", "0", cwd=folder)

    assert done.returncode in (0, 1), done.stderr
    assert _digests(folder) == before
    assert sorted(path.name for path in folder.iterdir() if path.is_dir()) == ["runs"]


def test_a_real_run_writes_its_files(folder: Path) -> None:
    """What runs with values as it is asked to keeps what it has written."""
    done = gradinspect("fit", "train.py", "--real", "--", "0", cwd=folder)

    assert done.returncode == 0, done.stderr
    assert (folder / "log.csv").read_text().startswith(tuple("-0123456789"))


@pytest.mark.slow
def test_files_are_put_back_if_the_command_is_killed(folder: Path) -> None:
    """A process of its own does it, soon."""
    before = _digests(folder)
    command = [sys.executable, "-m", "gradinspect", "fit", "train.py", "--", "600"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "step\n"
        assert (folder / "log.csv").read_text() == "1.0\n"

        process.send_signal(signal.SIGKILL)
    for _ in range(600):
        with suppress(FileNotFoundError):  # one that was there when the files were listed
            if _digests(folder) == before:
                break
        time.sleep(0.1)

    assert _digests(folder) == before


@pytest.mark.slow
def test_the_next_command_undoes_what_nobody_is_left_to_undo(folder: Path) -> None:
    """The command was killed, and the process that waits for that as well."""
    before = _digests(folder)
    environment = {**os.environ, "TMPDIR": str(folder / "runs")}
    command = [sys.executable, "-m", "gradinspect", "fit", "train.py", "--", "600"]
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "step\n"
        found = subprocess.run(["pgrep", "-f", f"undo.py {folder}/runs"], capture_output=True, text=True, check=True)
        os.kill(int(found.stdout), signal.SIGKILL)
        process.send_signal(signal.SIGKILL)
    assert _digests(folder) != before
    (folder / "other.py").write_text("import torch\ntorch.nn.Linear(3, 1)(torch.ones(2, 3)).sum().backward()\n")
    subprocess.run([*command[:4], "other.py"], cwd=folder, env=environment, check=True, capture_output=True)

    now = _digests(folder)
    assert {name: now[name] for name in before} == before
    assert not [*folder.glob("runs/gradinspect-kept-*/*.journal*")]


@pytest.mark.slow
def test_two_commands_at_once_put_the_original_back(folder: Path) -> None:
    """What one has put in a file's place is no original for the other, whichever ends first."""
    before = _digests(folder)
    processes = []
    for seconds in ("2", "6"):
        command = [sys.executable, "-m", "gradinspect", "fit", "train.py", "--", seconds]
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "step\n"
        processes.append(process)

    assert [process.communicate()[1] for process in processes] == ["", ""]
    assert _digests(folder) == before


def test_what_cannot_be_kept_is_named(tmp_path: Path) -> None:
    """A file that is too large to be copied is written, and the user reads it; one that is replaced is not copied."""
    (tmp_path / "train.py").write_text(
        "import torch\n"
        "with open('large.bin', 'ab') as file:\n    file.write(b'x')\n"
        "with open('replaced.bin', 'wb') as file:\n    file.write(b'x')\n"
        "torch.nn.Linear(3, 1)(torch.ones(2, 3)).sum().backward()\n"
    )
    for name in ("large.bin", "replaced.bin"):
        with (tmp_path / name).open("wb") as file:
            file.truncate(2**30 + 1)
    done = gradinspect("fit", "train.py", cwd=tmp_path)

    assert done.returncode == 0
    assert (tmp_path / "large.bin").stat().st_size == 2**30 + 2
    assert (tmp_path / "replaced.bin").stat().st_size == 2**30 + 1
    assert done.stderr == (
        f'gradinspect: "{tmp_path}/large.bin" was written by the program, and is not as it was before: '
        "files of more than 1.0 GiB are not copied.\n"
    )
