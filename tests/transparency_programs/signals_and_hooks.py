"""Signal handlers, hooks of Python and replaced builtins are called as often, in the same order, as without us."""

import builtins
import collections
import gc
import logging
import os
import signal
import sys
import threading
import warnings

import fingerprint
import torch
from torch import nn

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP)
print(*(signal.getsignal(number) for number in signal.valid_signals() if number < signal.SIGRTMIN))
print(sys.excepthook is sys.__excepthook__, threading.excepthook is threading.__excepthook__, sys.displayhook)
print(sys.unraisablehook is sys.__unraisablehook__, sys.gettrace(), sys.getprofile(), gc.callbacks, gc.get_threshold())
print(logging.root.level, logging.root.handlers, logging.raiseExceptions, sys.getswitchinterval())

events = []
calls = collections.Counter()
for name in ("print", "open", "input"):

    def counted(*args, name=name, original=getattr(builtins, name), **kwargs):
        calls[name] += 1
        return original(*args, **kwargs)

    setattr(builtins, name, counted)
for number in SIGNALS:
    signal.signal(number, lambda number, frame: events.append((signal.Signals(number).name, frame.f_code.co_name)))
sys.unraisablehook = lambda error: events.append(("unraisable", error.exc_type))
threading.excepthook = lambda error: events.append(("thread", error.exc_type))
gc.callbacks.append(lambda phase, info: info["generation"] == 2 and events.append((phase, 2)))
gc.disable()


class Failing:
    def __del__(self):
        raise KeyError


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
for step in range(3):
    for number in SIGNALS:
        os.kill(os.getpid(), number)
    optimizer.zero_grad()
    loss = model(torch.randn(5, 4)).pow(2).mean()
    loss.register_hook(lambda gradient: os.kill(os.getpid(), signal.SIGUSR1))
    loss.backward()
    optimizer.step()
    Failing()
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()
    gc.collect()
    warnings.warn("shown once for each place", stacklevel=1)
    print("step", step)
with open(os.devnull, "w") as nowhere:
    print("nowhere", file=nowhere)
print(*events, sep="\n")
print(*sorted(calls.items()), gc.isenabled(), signal.getitimer(signal.ITIMER_REAL), signal.pthread_sigmask(0, ()))
print(*(getattr(signal.getsignal(number), "__name__", None) for number in SIGNALS))
fingerprint.show(model)
