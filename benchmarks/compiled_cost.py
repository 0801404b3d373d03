"""Seconds and memory of a compiled step, plain, traced and compared: `python benchmarks/compiled_cost.py [PROGRAM...]`.

Each run is a process with an empty cache of torch.compile, so that it compiles what it runs; `again` has a full one.
Prints a row for each: seconds, those of the processor, which other programs change less, and the largest resident set
of it and its children; the last two also as multiples of the plain run.
"""

import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

PROGRAM = """
import torch
torch.manual_seed(0)
layers = [torch.nn.Sequential(torch.nn.LayerNorm(256), torch.nn.Linear(256, 1024), torch.nn.GELU(),
                              torch.nn.Linear(1024, 256)) for _ in range(6)]
model = torch.nn.Sequential(*layers)
optimizer = torch.optim.AdamW(model.parameters())
net = torch.compile(model, backend="BACKEND")
for _ in range(5):
    optimizer.zero_grad()
    net(torch.randn(512, 256)).square().mean().backward()
    optimizer.step()
"""
OURS = ("-m", "gradinspect")
RUNS = (
    ("plain", ()),
    ("plain, again", ()),
    ("trace --continue", (*OURS, "trace", "--continue")),
    ("trace --continue, again", (*OURS, "trace", "--continue")),
    ("diff --compiled", (*OURS, "diff", "--compiled")),
)


def main() -> None:
    """Run each program in each way."""
    with tempfile.TemporaryDirectory() as folder:
        names = sys.argv[1:]
        for backend in () if names else ("aot_eager", "inductor"):
            program = Path(folder) / f"{backend}.py"
            program.write_text(PROGRAM.replace("BACKEND", backend), encoding="utf-8")
            names.append(str(program))
        for name in names:
            _report(name, Path(folder))


def _report(name: str, folder: Path) -> None:
    print(f"\n{Path(name).name:24}{'seconds':>9}{'CPU':>9}{'':>7}{'MiB':>8}", flush=True)
    plain: tuple[float, float, float] | None = None
    for number, (label, words) in enumerate(RUNS):
        cache = folder / f"{Path(name).stem}-{label.removesuffix(', again').split()[0]}"
        found = _measured([sys.executable, *words, name], {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(cache)})
        plain = found if number == 0 or plain is None else plain
        seconds, busy, size = found
        ratios = (f"x{busy / plain[1]:.2f}", f"x{size / plain[2]:.2f}")
        print(f"{label:24}{seconds:9.1f}{busy:9.1f}{ratios[0]:>7}{size:8.0f}{ratios[1]:>7}", flush=True)


def _measured(command: Sequence[str], environment: Mapping[str, str]) -> tuple[float, float, float]:
    """Return the seconds, those of the processor, and the MiB of a process."""
    began = time.perf_counter()
    quiet = os.open(os.devnull, os.O_WRONLY)
    actions = [(os.POSIX_SPAWN_DUP2, quiet, 1), (os.POSIX_SPAWN_DUP2, quiet, 2)]
    process = os.posix_spawn(command[0], list(command), environment, file_actions=actions)
    _, _, used = os.wait4(process, 0)
    os.close(quiet)
    return time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


if __name__ == "__main__":
    main()
