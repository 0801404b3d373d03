"""The hooks that run on every module, while some are away."""

from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from gradinspect.torch_api.modules import take_global_hooks


def _ran(before: list[str]) -> list[str]:
    before.clear()
    nn.Identity()(torch.ones(1))
    return list(before)


def test_hooks_come_back_in_their_places() -> None:
    """Those of the program stay, and run in the order in which they were registered."""
    calls: list[str] = []

    def hook(name: str) -> Any:
        return lambda *_: calls.append(name)

    handles = [register_module_forward_pre_hook(hook("theirs")), register_module_forward_pre_hook(hook("ours"))]
    handles += [register_module_forward_hook(hook("ours after"), always_call=True)]
    handles += [register_module_forward_pre_hook(hook("theirs too"))]
    ours = {handles[1].id, handles[2].id}
    try:
        put_back = take_global_hooks(lambda: ours)
        away = _ran(calls)
        put_back()

        assert away == ["theirs", "theirs too"]
        assert _ran(calls) == ["theirs", "ours", "theirs too", "ours after"]
    finally:
        for handle in handles:
            handle.remove()


def test_what_is_removed_meanwhile_does_not_come_back() -> None:
    """A hook of ours that is no longer registered, or one of the program."""
    calls: list[str] = []
    ours = register_module_forward_pre_hook(lambda *_: calls.append("ours"))
    theirs = register_module_forward_pre_hook(lambda *_: calls.append("theirs"))
    ids = {ours.id}
    put_back = take_global_hooks(lambda: ids)
    ids.clear()
    ours.remove()
    theirs.remove()
    put_back()

    assert _ran(calls) == []
