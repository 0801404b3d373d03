"""torch's profiler, of which a process has one."""

import subprocess
import sys

import pytest

CHILD = """
import os, sys
from torch.autograd.profiler import profile
from gradinspect.torch_api.devices.profiler_turn import start_profiler, stop_profiler

profiler = profile(use_kineto=True)
start_profiler(profiler)
stop_profiler(profiler)
print("written")
if not os.fork():
    print("by the child", end="")
    sys.exit(4)
_, status = os.wait()
print(", which ended with", os.waitstatus_to_exitcode(status))
"""


@pytest.mark.slow
def test_a_child_that_is_forked_after_a_profiler_exits() -> None:
    """Where libkineto would wait for a thread that the child does not have; its output and its exit code are kept."""
    done = subprocess.run([sys.executable, "-c", CHILD], check=True, capture_output=True, text=True, timeout=300)
    assert done.stdout.endswith("by the child, which ended with 4\n")
