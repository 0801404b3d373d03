"""What `check` does around each backward call."""

import subprocess
import sys
from pathlib import Path

COUNT = """
import sys
import gradinspect.recording.walk as walks
from gradinspect.cli import main

count = 0
original = walks.Walk.__init__

def counting(*arguments):
    global count
    count += 1
    original(*arguments)

walks.Walk.__init__ = counting
status = main(["check", "train.py", "--continue", "--steps", "3"])
print(status, count)
"""
TRAIN = """
import torch

layer = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    layer(torch.randn(5, 4)).tanh().square().mean().backward()
    optimizer.step()
"""


def test_a_graph_is_walked_once(tmp_path: Path) -> None:
    """All observers of a backward call get the same walk."""
    (tmp_path / "train.py").write_text(TRAIN)
    done = subprocess.run(
        [sys.executable, "-c", COUNT], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )

    assert (done.stdout.splitlines() or [done.stderr])[-1] == "0 3"
