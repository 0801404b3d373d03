"""Run programs whose threads train under verbs and under the library, again and again, and count the failures.

python benchmarks/threads.py [--runs 200] [--only pool] [--verbs "check,grads,fit --real"]

A failure is a signal, a traceback, no end within two minutes, an exit code that the verb has no use for, or calls that
an error of ours kept from being looked at; its output is left in the folder for temporary files. Twenty runs of a verb
are forks of one process that has imported all, since that takes longer than the run. A program of the library repeats
its work inside one process, and counts each repetition as a run. Threads change every 10 microseconds.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

HEADER = """
import sys, threading, queue, torch
from concurrent.futures import ThreadPoolExecutor
from torch import nn
from torch.utils.checkpoint import checkpoint
sys.setswitchinterval(1e-5)
torch.set_num_threads(1)

def trainer(change=lambda loss, number: loss):
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    def step(number=0):
        optimizer.zero_grad()
        change(model(torch.randn(3, 4)).pow(2).mean(), number).backward()
        optimizer.step()
    return step

def train(seed):
    step = trainer()
    for number in range(6):
        step(number)
"""
PROGRAMS = {
    "pool": "with ThreadPoolExecutor(8) as pool:\n    list(pool.map(train, range(24)))",
    "straggler": "for _ in range(3):\n    threading.Thread(target=train, args=(0,)).start()\ntrain(0)",
    "shared": """
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
def work(_):
    for _ in range(8):
        model(torch.randn(3, 4)).pow(2).mean().backward()
        for parameter in model.parameters():
            parameter.data.sub_(parameter.grad, alpha=0.001)
with ThreadPoolExecutor(4) as pool:
    list(pool.map(work, range(4)))
""",
    "checkpointed": """
def work(seed):
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    for _ in range(4):
        x = torch.randn(3, 4, requires_grad=True)
        checkpoint(model, x, use_reentrant=bool(seed % 2)).pow(2).mean().backward()
with ThreadPoolExecutor(6) as pool:
    list(pool.map(work, range(12)))
""",
    "raising": """
class Bad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, number):
        ctx.number = number
        return x * 1
    @staticmethod
    def backward(ctx, gradient):
        if ctx.number % 3 == 0:
            raise ValueError("bad")
        return gradient, None
def work(seed):
    step = trainer(Bad.apply)
    for number in range(6):
        try:
            step(number)
        except ValueError:
            pass
with ThreadPoolExecutor(6) as pool:
    list(pool.map(work, range(12)))
""",
    "handed over": """
losses = queue.Queue(2)
def run():
    while (loss := losses.get()) is not None:
        loss.backward()
thread = threading.Thread(target=run)
thread.start()
model = nn.Linear(4, 1)
try:
    for _ in range(12):
        losses.put(model(torch.randn(3, 4)).pow(2).mean())
finally:
    losses.put(None)
    thread.join()
""",
    "daemons": """
import atexit
is_ready, is_over = threading.Event(), threading.Event()
def forever():
    step = trainer()
    while not is_over.is_set():
        step()
        is_ready.set()
threads = [threading.Thread(target=forever, daemon=True) for _ in range(3)]
for thread in threads:
    thread.start()
atexit.register(lambda: (is_over.set(), [thread.join() for thread in threads]))
is_ready.wait()
def join_one(gradient):
    thread = threading.Thread(target=trainer())
    thread.start()
    thread.join()
    return gradient * 2
w = torch.ones(4, requires_grad=True)
for _ in range(4):
    y = (w * torch.arange(4.0)).exp()
    y.register_hook(join_one)
    y.sum().backward()
""",
    "churn": """
has_ended = threading.Event()
def work():
    while not has_ended.is_set():
        model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.1), nn.Linear(3, 2))
        handle = model[0].register_forward_hook(lambda *_: None)
        optimizer = torch.optim.Adam(model.parameters())
        model(torch.randn(2, 3)).sum()
        handle.remove()
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
try:
    train(0)
finally:
    has_ended.set()
    for thread in threads:
        thread.join()
""",
}
LIBRARY = {
    "gi.check": "gi.check(trainer(), steps=3)",
    "gi.fit": "gi.fit(trainer())",
    "gi.record": "with gi.record():\n        train(seed)",
    "mixed": "(gi.check, gi.fit, lambda step: step(), lambda step: step())[seed % 4](trainer())",
}
REPETITIONS = 20
IN_POOL = """
import gradinspect as gi
def work(seed):
    {work}
with ThreadPoolExecutor(4) as pool:
    list(pool.map(work, range({number})))
"""
LIMIT_S = 120
HIDDEN = "Not looked at:"
FORKING = """
import faulthandler, importlib, os, pkgutil, signal, subprocess, sys, time
import torch.utils.checkpoint, torch.profiler, torch._dynamo
import gradinspect.cli
from gradinspect.cli.verbs import VERBS

for package in ("analyses", "checks", "cli", "observers", "recording", "renderers", "runner", "storage", "torch_api"):
    loaded = importlib.import_module(f"gradinspect.{package}")
    for module in pkgutil.walk_packages(loaded.__path__, f"{loaded.__name__}."):
        importlib.import_module(module.name)

def code_of(process, limit_s):
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(process, signal.SIGABRT)
    os.waitpid(process, 0)
    return "no end"

number, limit_s, folder, *words = sys.argv[1:]
os.chdir(folder)
for run in range(int(number)):
    process = os.fork()
    if not process:
        output = os.open(f"{run}.out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        faulthandler.enable()
        sys.exit(gradinspect.cli.main(words))
    print(code_of(process, float(limit_s)), flush=True)
os._exit(0)
"""


def outcomes(words: list[str], folder: Path, number: int) -> list[str]:
    """Run a command again and again, each time in a fork of a process that has loaded all; return what went wrong."""
    command = [sys.executable, "-c", FORKING, str(number), str(LIMIT_S), str(folder), *words]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    wrong = [_wrong(code, (folder / f"{run}.out"), words) for run, code in enumerate(done.stdout.splitlines())]
    return [one for one in wrong if one]


def _wrong(code: str, output: Path, words: list[str]) -> str:
    text = output.read_text(errors="replace")
    lines = [line for line in text.splitlines() if "Error" in line or "Fatal" in line or line.startswith(HIDDEN)]
    is_finding = words[0] == "check" and code == "1"
    if (code != "0" and not is_finding) or "Traceback" in text or f"\n{HIDDEN}" in f"\n{text}":
        (Path(tempfile.gettempdir()) / f"threads-failure-{time.time():.6f}.txt").write_text(f"{words}\n{text}")
        return f"{code} {lines[-1] if lines else ''}"
    return ""


def outcome_of_program(file: Path) -> list[str]:
    """Run a program of the library once."""
    command = [sys.executable, "-X", "faulthandler", file.name]
    output = file.with_suffix(".out")
    with output.open("w") as stream:
        try:
            code = subprocess.run(
                command, check=False, cwd=file.parent, stdout=stream, stderr=stream, timeout=LIMIT_S
            ).returncode
        except subprocess.TimeoutExpired:
            return ["no end"]
    wrong = _wrong(str(code), output, command)
    return [wrong] if wrong else []


def main() -> None:
    """Print a row for each program and verb."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--only", default="")
    parser.add_argument("--verbs", default="check,grads,trace,memory")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for key, work in LIBRARY.items():
            if options.only in key:
                file = folder / f"{key.replace('.', '_')}.py"
                file.write_text(HEADER + IN_POOL.format(work=work, number=REPETITIONS))
                report(key, "", options.runs, lambda _, file=file: outcome_of_program(file))
        for key, text in PROGRAMS.items():
            if options.only in key:
                file = folder / f"{key.replace(' ', '_')}.py"
                file.write_text(HEADER + text)
                for verb in options.verbs.split(","):
                    words = [*verb.split(), file.name]
                    report(key, verb, options.runs, lambda n, words=words: outcomes(words, folder, n))


def report(key: str, verb: str, runs: int, run: Callable[[int], list[str]]) -> None:
    """Run in parts, and print a row."""
    start = time.monotonic()
    failures: Counter[str] = Counter()
    for first in range(0, runs, REPETITIONS):
        failures.update(run(min(REPETITIONS, runs - first)))
    elapsed_s = time.monotonic() - start
    counts = f"{runs:5} runs {failures.total():4} failures {elapsed_s:6.0f} s"
    print(f"{key:14} {verb:8} {counts}", *failures.items(), flush=True)


if __name__ == "__main__":
    main()
