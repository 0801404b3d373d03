"""Threads of the program go on, as they would without us, while our own code runs on another one."""

from pathlib import Path

import pytest
from runs import gradinspect, python

pytestmark = pytest.mark.slow

PROGRAM = """
import builtins, importlib, os, sys, threading
import torch
from torch import nn

sys.setswitchinterval(1e-5)
os.chdir("work")
plain_print, counts, wrong, has_ended = print, [0, 0], [], threading.Event()

def counting(*arguments, **keywords):
    counts[0] += 1
    plain_print(*arguments, **keywords)

def prints(null=open(os.devnull, "w")):
    counts[1] += 1
    print(file=null)

def opens():
    open("here.txt").close()

def imports(first=sys.path[0]):
    sys.modules.pop("lazy", None)
    importlib.import_module("lazy")
    assert sys.path[0] == first, sys.path[0]
    import email.mime.text

def repeat(work):
    while not has_ended.is_set():
        try:
            work()
        except Exception as error:
            wrong.append(repr(error))

builtins.print = counting
model = nn.Sequential(*(layer for _ in range(20) for layer in (nn.Linear(4, 4), nn.LayerNorm(4))))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
threads = [threading.Thread(target=repeat, args=(work,)) for work in (prints, opens, imports)]
for thread in threads:
    thread.start()
try:
    for _ in range(6):
        optimizer.zero_grad()
        model(torch.ones(2, 4)).pow(2).mean().backward()
        optimizer.step()
finally:
    has_ended.set()
    for thread in threads:
        thread.join()
    builtins.print = plain_print
    plain_print(sorted(set(wrong)), counts[0] - counts[1], file=sys.stderr)
"""


@pytest.mark.parametrize("verb", ["check", "grads", "memory", "trace"])
def test_other_threads_keep_their_folder_their_imports_and_their_builtins(verb: str, tmp_path: Path) -> None:
    """They import what is beside the script, open relative paths, and call the functions that they replaced."""
    program = tmp_path / "program"
    (program / "work").mkdir(parents=True)
    (program / "work" / "here.txt").touch()
    (tmp_path / "work").symlink_to(program / "work")
    (program / "lazy.py").write_text("import json\n")
    script = program / "train.py"
    script.write_text(PROGRAM)
    plain = python(script, cwd=tmp_path, is_measured=False)
    done = gradinspect(verb, script, cwd=tmp_path, is_measured=False)

    assert plain.stderr == "[] 0\n"
    assert done.stderr == plain.stderr
    assert done.returncode == 0
