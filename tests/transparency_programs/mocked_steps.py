"""Steps run as tests of a trainer run them: the clock has few answers, files and processes must not be asked for."""

import collections
import contextlib
import functools
import gc
import inspect
import linecache
import math
import os
import signal
import sys
import threading
import time
from unittest import mock

import fingerprint
import torch
from torch import nn

REFUSED = (
    "builtins.open", "io.open", "os.stat", "os.getcwd", "os.getpid", "os.path.exists", "os.path.abspath",
    "linecache.getline", "linecache.getlines", "tokenize.open", "inspect.getsource", "traceback.extract_stack",
    "logging.getLogger", "gc.collect", "gc.disable", "threading.current_thread", "builtins.print",
)  # fmt: skip
COUNTED = {
    gc: (
        *("collect", "disable", "enable", "isenabled", "get_objects", "get_referrers", "get_referents"),
        *("freeze", "unfreeze", "get_freeze_count"),
    ),
    time: ("time", "perf_counter", "monotonic", "sleep"),
    threading: ("current_thread", "main_thread", "get_ident", "enumerate"),
    os: ("getpid", "chdir", "dup", "dup2", "fstat", "stat"),
    signal: ("signal", "getsignal", "setitimer", "raise_signal", "valid_signals"),
    math: ("isfinite", "isinf", "isnan", "sqrt", "hypot", "prod"),
    linecache: ("getline", "getlines", "checkcache", "updatecache", "lazycache"),
    inspect: ("signature", "getsource", "getattr_static", "unwrap", "currentframe", "stack"),
    sys: ("getrefcount",),
}
counts = collections.Counter()


def refuse(*_arguments, **_options):
    raise AssertionError("not expected here")


def counted(name, original):
    @functools.wraps(original)
    def wrapper(*args, **kwargs):
        counts[name] += 1
        return original(*args, **kwargs)

    return wrapper


class Optimizer(torch.optim.SGD):
    def __getattribute__(self, name):
        if not name.startswith("_"):
            counts[f"optimizer.{name}"] += 1
        return super().__getattribute__(name)


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
optimizer = Optimizer(model.parameters(), lr=0.1, momentum=0.9)
for parameter in model.parameters():
    parameter.grad = torch.zeros_like(parameter)
optimizer.step()  # what torch imports for it is there
for step in range(4):
    with contextlib.ExitStack() as stack:
        for name in REFUSED if step < 2 else ():
            stack.enter_context(mock.patch(name, refuse))
        for module, names in COUNTED.items() if step >= 2 else ():
            for name in names:
                wrapper = counted(f"{module.__name__}.{name}", getattr(module, name))
                stack.enter_context(mock.patch.object(module, name, wrapper))
        if step < 2:
            stack.enter_context(mock.patch("time.perf_counter", side_effect=[0.0, 1.5]))
        start = time.perf_counter()
        optimizer.zero_grad()
        loss = model(torch.randn(5, 4)).pow(2).mean()
        loss.backward()
        optimizer.step()
        took = time.perf_counter() - start if step < 2 else None
    sys.stdout.write(f"{step} {took} {loss.item():.9f}\n")
print(*sorted(counts.items()), sep="\n")
fingerprint.show(model)
