"""Change one thing in a module, and see whether a fast test notices: `python benchmarks/mutants.py recording storage`.

The changes are those of cosmic-ray, without what cannot fail a test: annotations, and the arguments of class
statements. They are drawn at random from all modules of a package, with a seed. torch and the test tools are imported
once; each change is tried in a fork of that process, which compiles the changed source in place of the file and runs
the tests that reach its line, the fastest first: `tests_in_forks`. Tests that start other processes do not see the
change, and those that fail in such forks do not count.
"""

import argparse
import ast
import gc
import importlib
import math
import os
import random
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from cosmic_ray import plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from tests_in_forks import OPTIONS, commands_in_forks, reach_of, replace_source, run_tests

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "gradinspect"
PRELOADED = ("torch", "torch._dynamo", "hypothesis", "inline_snapshot", "numpy", "rich.console", "typer.main", "yaml")
SAME_THING = {"Eq_Is", "NotEq_IsNot", "Is_Eq", "IsNot_NotEq"}  # replacements that differ for few values
WIDTH = 120  # of a line
PATIENCE = 4.0  # times as long as the tests took without a change


class Mutant(NamedTuple):
    """A changed module."""

    path: Path
    line: int
    column: int
    operator: str
    occurrence: int

    @property
    def place(self) -> str:
        """File and line, as an editor takes them."""
        return f"{self.path.relative_to(ROOT)}:{self.line}"


def tests_of(package: str) -> str:
    """Name the folder of tests that mirrors a package, or the package that a module is in; or certain tests."""
    folder = ROOT / "tests" / package
    return str(folder if "::" in package or folder.exists() else folder.parent)


def mutants_of(path: Path) -> Iterator[Mutant]:
    """List all changes to a module that a test could notice."""
    source = path.read_text(encoding="utf-8")
    ignored = set(_declarations(ast.parse(source)))
    nodes = list(ast_nodes(get_ast(source)))
    for name in plugins.operator_names():
        operator = plugins.get_operator(name)
        if operator.arguments() or any(name.endswith(same) for same in SAME_THING):
            continue
        positions = [start for node in nodes for start, _ in operator().mutation_positions(node)]
        for occurrence, (line, column) in enumerate(positions):
            if (line, column) not in ignored:
                yield Mutant(path, line, column, name, occurrence)


def _declarations(tree: ast.Module) -> Iterator[tuple[int, int]]:
    """List the places inside annotations, aliases of types, and the arguments of class statements."""
    for node in ast.walk(tree):
        for part in _declared(node):
            for line in range(part.lineno, (part.end_lineno or part.lineno) + 1):
                first = part.col_offset if line == part.lineno else 0
                last = part.end_col_offset if line == part.end_lineno else None
                yield from ((line, column) for column in range(first, last or WIDTH))


def _declared(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.FunctionDef(returns=ast.expr() as returned):
            return [returned]
        case ast.AnnAssign(annotation=ast.Name(id="TypeAlias"), value=ast.expr() as alias):
            return [alias]
        case ast.arg(annotation=ast.expr() as annotation) | ast.AnnAssign(annotation=annotation):
            return [annotation]
        case ast.ClassDef(keywords=keywords):
            return [keyword.value for keyword in keywords]
    return []


def changed_source(mutant: Mutant) -> str | None:
    """Return the source of a module with a change; None if cosmic-ray cannot make it."""
    source = mutant.path.read_text(encoding="utf-8")
    try:
        changed: str | None = mutate_code(source, plugins.get_operator(mutant.operator)(), mutant.occurrence)
        ast.parse(changed or "")
    except (AttributeError, SyntaxError):  # its ExceptionReplacer knows no dotted names; `*` of arguments is no product
        return None
    return None if changed == source else changed


def try_out(mutant: Mutant, tests: list[str], patience_s: float, *, is_changed: bool = True) -> str:
    """Run tests on a changed module, in a fork; return "killed", "survived" or "too slow"."""
    changed = changed_source(mutant) if is_changed else mutant.path.read_text(encoding="utf-8")
    pid = os.fork()
    if pid == 0:
        os.setsid()
        replace_source(str(mutant.path), changed or "")
        commands_in_forks()
        os._exit(run_tests([f"{ROOT}/{test}" for test in tests]))
    ends = time.monotonic() + patience_s
    while time.monotonic() < ends:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return "survived" if status == 0 else "killed"
        time.sleep(0.02)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return "too slow"


def drawn(everything: list[Mutant], size: int, chance: random.Random) -> list[Mutant]:
    """Draw places, and one change of each: `+` alone can become eleven other things, most of which fail at once."""
    places: dict[tuple[Path, int, int, str], list[Mutant]] = defaultdict(list)
    for mutant in everything:
        places[mutant.path, mutant.line, mutant.column, mutant.operator.partition("_")[0]].append(mutant)
    order = chance.sample(sorted(places), len(places))
    chosen = (chance.choice(places[place]) for place in order)
    return list(islice((mutant for mutant in chosen if changed_source(mutant) is not None), size))


def difference(mutant: Mutant) -> tuple[str, str]:
    """Return the line before and after."""
    before = mutant.path.read_text(encoding="utf-8")
    after = changed_source(mutant) or ""
    pairs = zip(before.splitlines(), after.splitlines(), strict=False)
    return next(((one.strip(), other.strip()) for one, other in pairs if one != other), ("", "(removed)"))


def interval(killed: int, total: int) -> tuple[float, float]:
    """Return the 95% confidence interval of a share (Wilson)."""
    z, share = 1.96, killed / total
    middle = (share + z * z / (2 * total)) / (1 + z * z / total)
    half = z / (1 + z * z / total) * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    return middle - half, middle + half


def modules_of(package: str) -> list[Path]:
    """List the modules of a package, or the one module that is named."""
    path = PACKAGE / package
    return sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]


def main() -> None:
    """Try a sample of all changes, and print those that no test notices."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("packages", nargs="+", help="such as recording, analyses/structure")
    parser.add_argument("--tests", action="append", default=[], help="other tests, such as observers")
    parser.add_argument("--sweep", action="store_true", help="run the tests of the long sweeps, too")
    parser.add_argument("--sample", type=int, default=100, help="of all changes of these packages together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="where to keep which test reaches which line, for the next time")
    options = parser.parse_args()
    os.environ["CI"] = "true"  # properties draw the same examples in every run
    os.environ["OMP_NUM_THREADS"] = "1"  # forks have no other threads
    os.chdir(ROOT)
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    for name in PRELOADED:
        importlib.import_module(name)
    if options.sweep:
        OPTIONS.extend(["-m", ""])
    gc.collect()
    gc.freeze()  # else each collection in a fork looks at all of torch's objects, and so copies their memory
    folder: Path = options.folder or Path(os.environ.get("TMPDIR", "/tmp")) / f"mutants-{os.getpid()}"
    folder.mkdir(parents=True, exist_ok=True)
    reach = reach_of([tests_of(name) for name in (*options.packages, *options.tests)], PACKAGE, folder)
    if reach.failed:
        print(f"{len(reach.failed)} tests fail in forks, and do not count, as {reach.failed[0]}", flush=True)
    everything = [mutant for package in options.packages for path in modules_of(package) for mutant in mutants_of(path)]
    sample = drawn(everything, options.sample, random.Random(options.seed))
    needed = sorted({test for mutant in sample for test in reach.tests_of(mutant.path, mutant.line)})
    if try_out(sample[0], needed, 30 + PATIENCE * sum(reach.seconds.values()), is_changed=False) != "survived":
        sys.exit("The tests fail without any change.")
    outcomes: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in sorted(sample):
        tests = reach.tests_of(mutant.path, mutant.line)
        expected = sum(reach.seconds.get(test, 0.0) for test in tests)
        outcome = try_out(mutant, tests, 30 + PATIENCE * expected) if tests else "survived"
        outcomes[outcome].append(mutant)
        if outcome == "survived":
            before, after = difference(mutant)
            print(f"{mutant.place}  {len(tests)} tests\n  - {before}\n  + {after}", flush=True)
    total, survived = len(sample), len(outcomes["survived"])
    low, high = interval(total - survived, total)
    print(
        f"{' '.join(options.packages)}: {total - survived} of {total} killed ({len(outcomes['too slow'])} by time), "
        f"{(total - survived) / total:.0%}; of all, with 95% confidence, {low:.0%} to {high:.0%}"
    )


if __name__ == "__main__":
    main()
