"""The code that holds saved tensors in another way: on the CPU, or in half precision.

NOTE [What is held instead]
torch's own `save_on_cpu` also moves weights, which stay where they are in any case, moves a tensor as often as nodes
save it, and forgets strides, so that a convolution may compute otherwise. Here weights and buffers are left, and so are
views that show more than there is in memory; what several nodes save is copied once, and keeps its strides.
"""

from typing import Literal

from gradinspect.analyses.planning.changes import HalfSaves, Offload

HERE: Literal["cpu"] = "cpu"
NOWHERE: Literal["meta"] = "meta"  # where our runs on fake tensors offload to: it is not counted as the device's memory

_SAVED_OTHERWISE = """\
def {name}(model, paths{parameter}):
    from functools import partial
    from itertools import chain
    from weakref import WeakKeyDictionary, WeakValueDictionary

    import torch
    from torch.autograd.graph import saved_tensors_hooks

    def run(module, forward, *args, **kwargs):
        weights = {{tensor.untyped_storage() for tensor in chain(module.parameters(), module.buffers())}}
        copies = WeakKeyDictionary()  # of each storage, by view: what several nodes save is copied once

        def pack(tensor):
            if tensor.layout is not torch.strided{condition}:
                return None, tensor
            storage = tensor.untyped_storage()
            if storage in weights or tensor.nbytes > storage.nbytes():  # held anyway, or expanded
                return None, tensor
            views = copies.setdefault(storage, WeakValueDictionary())
            view = (tensor._version, tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype)
            copy = views.get(view)
            if copy is None:
                copy = views[view] = {copy}
            return tensor.{what}, copy

        def unpack(saved):
            {what}, tensor = saved
            return tensor if {what} is None else tensor.to({what}{how})

        with saved_tensors_hooks(pack, unpack):
            return forward(*args, **kwargs)

    for path in paths:
        module = model.get_submodule(path)
        module.forward = partial(run, module, module.forward)
"""
_OFFLOAD = "offload_saved"
_HALF = "save_in_half"
_TO_HOST = """\
torch.empty_like(tensor, device=to, pin_memory=tensor.is_cuda and to == "cpu")
                copy.copy_(tensor, non_blocking=True)"""


def offloading_code() -> str:
    """Write the function that moves what modules save to the CPU."""
    return _SAVED_OTHERWISE.format(
        name=_OFFLOAD, parameter=', to="cpu"', condition="", copy=_TO_HOST, what="device", how=", non_blocking=True"
    )


def halving_code() -> str:
    """Write the function that holds what modules save in half precision."""
    return _SAVED_OTHERWISE.format(
        name=_HALF, parameter="", condition=" or tensor.dtype is not torch.float32",
        copy="tensor.to(torch.bfloat16)", what="dtype", how="",
    )  # fmt: skip


def saves_call(change: Offload | HalfSaves, root: str, paths: str, host: str) -> str:
    """Write the call of either.

    Args:
        change: Which one.
        root: What the program calls the outermost module.
        paths: The modules, as code.
        host: Where to offload to.
    """
    if isinstance(change, HalfSaves):
        return f"{_HALF}({root}, {paths})"
    return f"{_OFFLOAD}({root}, {paths}{'' if host == HERE else f', to={host!r}'})"
