"""Functions of the standard library are replaced by those that count: what torch itself needs is called before."""

import collections
import copy
import dis
import functools
import importlib
import json
import math
import operator
import os
import pickle
import random
import threading
import time
from pathlib import Path

import fingerprint
import torch
from torch import nn

counts = collections.Counter()


def count(holder, name):
    original = getattr(holder, name)

    @functools.wraps(original)
    def wrapper(*args, **kwargs):
        counts[f"{holder.__name__}.{name}"] += 1
        return original(*args, **kwargs)

    setattr(holder, name, wrapper)


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def step():
    optimizer.zero_grad()
    model(torch.randn(3, 4)).pow(2).mean().backward()
    optimizer.step()


for holder in (copy, json, math, operator, pickle, random, time):
    for name in holder.__all__ if hasattr(holder, "__all__") else [name for name in dir(holder) if name[0] != "_"]:
        if callable(getattr(holder, name)) and not isinstance(getattr(holder, name), type):
            count(holder, name)
for name in ("fork", "pipe", "close", "waitpid", "kill", "write", "read", "getpid", "getcwd", "_exit", "dup2"):
    count(os, name)
for name in ("Lock", "RLock", "get_ident", "current_thread", "main_thread", "active_count", "enumerate"):
    count(threading, name)
for name in ("open", "read_text", "read_bytes", "exists", "cwd", "write_text"):
    count(Path, name)
count(dis, "get_instructions")
count(importlib, "reload")
for _ in range(4):
    step()
print(*sorted(counts.items()), sep="\n")
fingerprint.show(model)
