"""Try gradinspect with several versions of torch, and write docs/torch_versions.md: versions x verbs and witnesses.

    python benchmarks/torch_versions.py                     # makes an environment per version, 5 GB, and deletes it
    python benchmarks/torch_versions.py 2.13.0 newest       # these versions only; no table is written
    python benchmarks/torch_versions.py --environments DIR  # DIR/t2.13.0 and so on lie ready; makes the others

Each verb runs on samples, and what it prints is compared with what it prints on the version that the tests are pinned
to. Witnesses are tests that read the live graph in a second, independent way. Exit code 1 if a version that must do
everything does not. A version that cannot be had is said, and is no failure.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PINNED = "2.13.0"
INSTALL_LIMIT_S = 1500  # 5 GB; a registry that does not answer must not hold up whoever asked
VERSIONS = ("2.8.0", "2.9.1", "2.10.0", "2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.0")
IN_PART = ("2.8.", "2.9.")  # where torch does not say whether a saved tensor has a hook
TOOLS = ("numpy", "pytest", "hypothesis", "inline-snapshot", "expecttest")
SAMPLES = (  # the most telling first; not lstm and operators, whose linear is an unsafe view from some torch on
    "checkpointed", "custom_function", "double_backward", "gan", "mlp", "resnet", "transformer",
    "autocast", "checkpointed_reentrant", "node_hooks", "tensor_hooks", "unbind",
)  # fmt: skip
FEW = ("custom_function", "checkpointed", "double_backward", "gan", "resnet")
VERBS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "trace": (("trace",), SAMPLES),
    "saved": (("saved",), FEW),
    "memory": (("memory",), FEW),
    "memory --fake": (("memory", "--fake"), FEW),
    "memory --iterations 2": (("memory", "--iterations", "2"), ("growing", "train")),
    "grads": (("grads",), FEW),
    "grads --steps 3": (("grads", "--steps", "3"), ("train",)),
    "step": (("step", "--script", "go.txt"), FEW),
    "trace --create-graph": (("trace", "--create-graph"), ("mlp", "lstm")),
    "check": (("check",), FEW),
    "fit": (("fit",), ("mlp", "checkpointed", "gan", "train")),
}
WITNESSES = {
    "engine prehooks: every node, no other": ("tests/recording/test_walk.py",),
    "pack hooks: every byte": ("tests/recording/test_memory_truth.py",),
    "hooks, many threads": ("tests/recording/test_hooks.py",),
    "op_db: every saved attribute": ("tests/recording/test_opinfo_sweep.py::test_a_twelfth_of_all_ops",),
    "formulas by hand": ("tests/observers/stepping/test_lockstep.py",),
    "a private name taken away": ("tests/torch_api/test_missing_names.py::test_several_names_at_once",),
}
# Runs commands, each in a fork of one process that has imported torch.
DRIVER = """
import json, sys
sys.path.insert(0, sys.argv[1])
from runs import gradinspect
done = [gradinspect(*words) for words in json.loads(sys.argv[2])]
print(json.dumps([f"{one.returncode}\\n{one.stdout}{one.stderr}" for one in done]))
"""
VARYING = (
    (re.compile(r"(warning: )?torch 2\.\S+\s+has\s+no\s.*?has\s+it\)\.\n", re.DOTALL), ""),  # said of each version
    (re.compile(r"\d+(\.\d+)? ?(ns|us|µs|ms|s)\b"), "TIME"),
    (re.compile(r"\d\.\de[+-]\d\d"), "NUMBER"),  # the last digit is the kernel's
    (re.compile(r"/tmp/[\w./-]+"), "/tmp"),
)


@dataclass(frozen=True)
class Cell:
    """How a row came out on one version."""

    good: int
    of: int
    other: tuple[str, ...] = ()  # the samples or tests that are not as they should be

    @property
    def text(self) -> str:
        """Write it for the table."""
        return f"{self.good} of {self.of}"


def try_version(
    python: Path, rows: list[str], expected: dict[str, str], num_samples: int
) -> tuple[dict[str, Cell], dict[str, str]]:
    """Run the rows with one interpreter; return the cells, and what the verbs printed."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100", "OMP_NUM_THREADS": "1", "CI": "true"}
    version = run([python, "-c", "import torch; print(torch.__version__)"], environment).stdout.strip()
    texts = run_verbs(python, [row for row in rows if row in VERBS], environment, num_samples)
    cells: dict[str, Cell] = {}
    for row in rows:
        if row in VERBS:
            printed = {key: text for key, text in texts.items() if key.startswith(f"{row}: ")}
            other = [key for key, text in printed.items() if expected.get(key, text) != text]
            names = tuple(key.rpartition(" ")[2] for key in other)
            cells[row] = Cell(len(printed) - len(other), len(printed), names)
        else:
            cells[row] = run_witness(python, WITNESSES[row], environment)
        print(f"  {version:14} {row:40} {cells[row].text}  {' '.join(cells[row].other)[:300]}", flush=True)
    return cells, texts


def run_verbs(python: Path, rows: list[str], environment: dict[str, str], num_samples: int) -> dict[str, str]:
    """Run verbs on their samples; return what each printed, with its exit status, without what differs on each run."""
    asked = [(f"{row}: {sample}", VERBS[row][0], sample) for row in rows for sample in VERBS[row][1][:num_samples]]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "go.txt").write_text("continue\n")
        words = [[verb[0], str(ROOT / "samples" / f"{sample}.py"), *verb[1:]] for _, verb, sample in asked]
        done = run([python, "-c", DRIVER, ROOT / "tests", json.dumps(words)], environment, Path(folder))
    if done.returncode:
        raise SystemExit(f"The verbs could not be run with {python}:\n{done.stderr}")
    texts = {}
    for (key, _, _), text in zip(asked, json.loads(done.stdout), strict=True):
        texts[key] = text
        for pattern, word in VARYING:
            texts[key] = pattern.sub(word, texts[key])
    return texts


def run_witness(python: Path, tests: tuple[str, ...], environment: dict[str, str]) -> Cell:
    """Run some tests and count those that pass."""
    words = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=no", "-m", "not sweep"]  # also slow ones
    done = run([*words, *tests], environment, ROOT)
    counts = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|error)", done.stdout)}
    bad = tuple(
        line.split(" - ")[0].rpartition("::")[2] for line in done.stdout.splitlines() if line.startswith("FAILED")
    )
    return Cell(counts.get("passed", 0), max(1, sum(counts.values())), bad)


def run(
    words: list[Any], environment: dict[str, str], folder: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end."""
    return subprocess.run(
        list(map(str, words)), capture_output=True, text=True, env=environment, cwd=folder, check=False, timeout=3600
    )


def make_environment(version: str, folder: Path) -> Path | None:
    """Install a version of torch and what the package needs; None when it cannot be had."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    torch = "torch" if version == "newest" else f"torch=={version}"
    pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-cache-dir"]
    try:
        done = subprocess.run(
            [*pip, torch, *TOOLS, ROOT], check=False, capture_output=True, text=True, timeout=INSTALL_LIMIT_S
        )
        reason = (done.stderr.splitlines() or ["no reason given"])[-1] if done.returncode else None
    except subprocess.TimeoutExpired:
        reason = f"it was not installed within {INSTALL_LIMIT_S // 60} minutes"
    if reason is not None:
        print(f"{torch} cannot be had here, so it is not tried: {reason}", flush=True)
        return None
    return python


def interpreters(versions: list[str], ready: Path | None) -> Iterator[tuple[str, Path]]:
    """Yield an interpreter for each version; one that was made is deleted when the next is asked for."""
    for version in versions:
        names = (version, version.rpartition(".")[0])
        known = [ready / f"t{name}" / "bin" / "python" for name in names] if ready is not None else []
        found = next(filter(Path.exists, known), None)
        if found is not None:
            yield version, found
            continue
        folder = Path(tempfile.mkdtemp(prefix="torch-version-"))
        try:
            python = make_environment(version, folder)
            if python is not None:
                yield version, python
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def table(results: dict[str, dict[str, Cell]]) -> str:
    """Write the page; a row that was not run on a version has a dash there."""
    rows = [row for row in (*VERBS, *WITNESSES) if any(row in cells for cells in results.values())]
    lines = [
        "# Versions of torch",
        "",
        "Made by `python benchmarks/torch_versions.py`. A verb is right where its screens are those of torch "
        f"{PINNED} on a sample, byte for byte but for times and last digits; a sample that differs is named below. "
        "A witness reads the live graph in a second way; its numbers are those of its tests.",
        "",
        "| | " + " | ".join(results) + " |",
        "|---|" + "---|" * len(results),
    ]
    for row in rows:
        texts = [cells[row].text if row in cells else "–" for cells in results.values()]
        lines.append(f"| {row} | {' | '.join(texts)} |")
    lines += ["", "## What differs", ""]
    lines += [
        f"- {version}, {row}: {', '.join(cell.other)}"
        for version, cells in results.items()
        for row, cell in cells.items()
        if cell.other
    ]
    lines += [
        "",
        "Up to torch 2.9 a saved tensor does not say whether it has a hook. It is read only where no hook can be, and "
        "is else shown as unreadable; a line under the figures says so. Up to torch 2.11 a checkpoint saves an empty "
        "tensor besides its inputs, so `memory` counts a storage more for each, of 0 bytes. In `lstm`, torch 2.15 "
        "itself makes an UnsafeViewBackward0 where 2.13 makes a ViewBackward0. The curves of `fit` show what "
        "is allocated on the way, which differs in optimizers and checkpoints; the peaks are equal to the byte.",
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Try the versions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="*", help="such as 2.14.1, or newest; all of them if none is named")
    parser.add_argument("--environments", type=Path, help="a folder with environments that lie ready")
    parser.add_argument("--only", action="append", default=[], help="a row of the table")
    parser.add_argument("--samples", type=int, default=len(SAMPLES), help="how many at most for each verb")
    parser.add_argument("--keep", type=Path, help="a file that remembers the rows of each version")
    asked = parser.parse_args()
    rows = asked.only or [*VERBS, *WITNESSES]
    versions = asked.versions or list(VERSIONS)
    kept: dict[str, Any] = json.loads(asked.keep.read_text()) if asked.keep and asked.keep.exists() else {}
    order = sorted(versions, key=lambda version: version != PINNED)  # the pinned one first: it says what is right
    expected: dict[str, str] = kept.get("expected", {})
    results: dict[str, dict[str, Cell]] = {
        version: {row: Cell(*cell[:2], tuple(cell[2])) for row, cell in cells.items()}
        for version, cells in kept.get("results", {}).items()
    }
    for version, python in interpreters(order, asked.environments):
        cells, texts = try_version(python, rows, expected, asked.samples)
        results.setdefault(version, {}).update(cells)
        expected = {**texts, **expected}  # the first version says what is right
        if asked.keep:
            plain = {
                name: {row: [c.good, c.of, c.other] for row, c in found.items()} for name, found in results.items()
            }
            asked.keep.write_text(json.dumps({"expected": expected, "results": plain}))
    if set(VERSIONS) <= set(results):
        whole = {version: results[version] for version in VERSIONS}
        (ROOT / "docs" / "torch_versions.md").write_text(table(whole), encoding="utf-8")
        print("Wrote docs/torch_versions.md")
    wrong = [version for version in order if not version.startswith(IN_PART)
             and any(cell.good < cell.of for cell in results.get(version, {}).values())]  # fmt: skip
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
