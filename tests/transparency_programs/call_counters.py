"""Replace the public functions of torch and the methods of tensors by functions that count, as a program may.

Each call is also written to a pipe, if the environment has one: the process, the number of the call, and what is called.
"""

import collections
import functools
import os
import types

import torch
from torch import nn

counts = collections.Counter()
LOG = os.open(os.environ["CALLS_PIPE"], os.O_WRONLY) if "CALLS_PIPE" in os.environ else None
write, getpid = os.write, os.getpid
FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)
MADE = ("__init__", "__new__", "__getattribute__", "__setattr__", "__delattr__", "__dir__", "__torch_function__")
ASKED = ("has_torch_function", "handle_torch_function", "is_tensor_like")  # torch asks these where a mode is active


def counted(name, original):
    @functools.wraps(original)
    def wrapper(*args, **kwargs):
        counts[name] += 1
        if LOG is not None:
            write(LOG, f"{getpid()} {counts.total()} {name}\n".encode())
        return original(*args, **kwargs)

    return wrapper


def count_all(holder, found):
    for name, value in dict(found).items():
        is_operator = isinstance(holder, type) and name.startswith("__") and name not in MADE
        is_public = is_operator or not name.startswith("_")
        if is_public and isinstance(value, FUNCTIONS) and not name.startswith(ASKED):
            setattr(holder, name, counted(f"{holder.__name__}.{name}", value))


def start():
    count_all(torch.Tensor, vars(torch._C.TensorBase) | vars(torch.Tensor))
    for module in (torch, torch.autograd, torch.linalg, nn.functional, nn.init, nn.utils, torch.random):
        count_all(module, vars(module))
    for kind in (nn.Module, torch.optim.Optimizer, torch.optim.Adam):
        count_all(kind, vars(kind))
    for kind in (torch.no_grad, torch.enable_grad, torch.set_grad_enabled):
        kind.__enter__ = counted(f"{kind.__name__}.__enter__", kind.__enter__)


def report():
    return "".join(f"{name} {number}\n" for name, number in sorted(counts.items()))
