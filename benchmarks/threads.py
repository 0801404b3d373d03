"""Run programs whose threads train under verbs and under the library, again and again, and count the failures.

python benchmarks/threads.py [--runs 200] [--only pool] [--verbs check,grads]

A failure is a signal, a traceback, no end within two minutes, or an exit code that the verb has no use for. A program
of the library repeats its work inside one process, and counts each repetition as a run. Threads change every 10
microseconds.
"""

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
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


def outcome(command: list[str], folder: Path) -> str | None:
    """Run once; return what went wrong."""
    try:
        done = subprocess.run(
            command, check=False, cwd=folder, capture_output=True, text=True, errors="replace", timeout=120
        )
    except subprocess.TimeoutExpired:
        return "no end"
    lines = [line for line in done.stderr.splitlines() if "Error" in line or "Fatal" in line]
    is_finding = "check" in command and done.returncode == 1
    if (done.returncode and not is_finding) or "Traceback" in done.stderr:
        return f"{done.returncode} {lines[-1] if lines else ''}"
    return None


def main() -> None:
    """Print a row for each program and verb."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--only", default="")
    parser.add_argument("--verbs", default="check,grads,trace,memory")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        todo = [
            (key, verb, HEADER + text, [sys.executable, "-m", "gradinspect", verb], 1)
            for key, text in PROGRAMS.items()
            for verb in options.verbs.split(",")
        ] + [
            (key, "", HEADER + IN_POOL.format(work=work, number=REPETITIONS), [sys.executable], REPETITIONS)
            for key, work in LIBRARY.items()
        ]
        for key, verb, text, command, each in todo:
            if options.only in key:
                file = folder / f"{key.replace(' ', '_').replace('.', '_')}.py"
                file.write_text(text)
                runs = range(0, options.runs, each)
                failures = Counter(filter(None, (outcome([*command, file.name], folder) for _ in runs)))
                print(f"{key:14} {verb:8} {len(runs) * each:5} runs {failures.total():4} failures", *failures.items())


if __name__ == "__main__":
    main()
