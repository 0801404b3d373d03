"""The Python hooks that torch will run on a node or a tensor.

NOTE [Reading hooks]
torch does not expose a node's hooks. But to register one, it first passes the dict of existing hooks to
`_register_hook`, a Python function, and adds nothing if that raises. So hooks are read by a registration that never
happens: the hook is a `_Question`, and a wrapper of torch's function answers it and raises. Other registrations
meanwhile, on this thread or another, pass through to torch's function. This costs 4 microseconds per node, and is
skipped if no hook of any kind was ever made in this process.
Source: torch/csrc/autograd/python_cpp_function.cpp `registerFunctionHook`, torch/autograd/function.py, torch 2.13.

NOTE [One hook for all of ours]
torch goes through its dict of hooks while it calls them, and raises in the program if another thread changes that dict
meanwhile. It does not look again after the last one. So our hooks of one kind are one of torch's, which comes last
unless the program registers its own later, and several recordings add to it and leave it without changing the dict.
Source: torch/optim/optimizer.py `profile_hook_step`, torch/nn/modules/module.py `register_module`, torch 2.13.
"""

from array import array
from collections.abc import Callable, Iterator, Mapping, Sized
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Literal, NamedTuple

import torch
from torch.nn.modules.module import (
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils.hooks import RemovableHandle

from gradinspect.torch_api.dynamo import passed_by, uncompiled
from gradinspect.torch_api.patching.forks import lock_of_process
from gradinspect.torch_api.patching.interruptions import pass_on_interruption
from gradinspect.torch_api.patching.patches import Patch, patched
from gradinspect.torch_api.probes import private

_NO_HOOKS = "hooks of nodes are not shown"
_REGISTER = private("torch.autograd.function._HookMixin._register_hook", _NO_HOOKS)
_HOLDER = private("torch.autograd.function._HookMixin", _NO_HOOKS)
_NEXT_ID = private("torch.utils.hooks.RemovableHandle.next_id", "reading hooks takes a little longer")
_OF_TENSOR = private("torch.Tensor._backward_hooks", "hooks of tensors are not shown")
_AFTER_GRAD = private("torch.Tensor._post_accumulate_grad_hooks", "hooks of tensors are not shown")

Hooks = Mapping[int, Any]


class _AnsweredError(Exception):
    """Aborts a registration before anything is registered."""


class _Question:
    """A placeholder hook that receives the registered hooks."""

    def __init__(self) -> None:
        self.answer: Hooks | None = None

    def __call__(self, *_gradients: object) -> None:
        """Change nothing, if it is ever run."""


def _answering(original: Any) -> "staticmethod[[Any, Any], Any]":
    """Wrap torch's registration so that it answers a `_Question`."""
    register: Callable[[Any, Any], Any] = original.__func__ if isinstance(original, staticmethod) else original

    def _register_hook(backward_hooks: Hooks | None, hook: Any) -> Any:
        if type(hook) is _Question:
            hook.answer = backward_hooks
            raise _AnsweredError
        return register(backward_hooks, hook)

    return staticmethod(_register_hook)


class _Ours:
    """Counts our own hooks."""

    number = 0


class NodeHooks:
    """Our hooks on many nodes. Torch's own handles are dropped: one takes as much memory as the record of its node."""

    def __init__(self) -> None:
        """Start empty."""
        self.nodes: list[Callable[[], object]] = []  # for each a weak reference, which gives None when it is gone
        self._ids = array("q")

    def __len__(self) -> int:
        """Count the hooks."""
        return len(self._ids)

    def add(self, handle: RemovableHandle) -> None:
        """Keep a hook. Only the node holds the dict of its hooks, to which a handle has a weak reference."""
        self.nodes.append(handle.hooks_dict_ref)
        self._ids.append(handle.id)

    def remove(self) -> None:
        """Remove all hooks from their nodes, and forget these."""
        for node, number in zip(self.nodes, self._ids, strict=True):
            hooks: Any = node()
            if hooks is not None:
                hooks.pop(number, None)
        self.nodes, self._ids = [], array("q")


def note_ours(handles: Sized) -> None:
    """Exclude our own hooks from `hooks_were_made`. Calling this is optional, and saves time."""
    _Ours.number += len(handles)


class _Registered(NamedTuple):
    """One of our hooks, in a list of them."""

    hooks: "_OurHooks"
    hook: Callable[..., None]
    turn: AbstractContextManager[object]
    note: Callable[[Exception], object]
    is_here: Callable[[], bool]

    def remove(self) -> None:
        """Call it no longer."""
        self.hooks.remove(self)


class _OurHooks:
    """Our hooks of one kind, as a single one of torch's. NOTE [One hook for all of ours]."""

    def __init__(self, register: Callable[[Any], RemovableHandle]) -> None:
        self._register = register
        self._lock = lock_of_process()
        self._all: tuple[_Registered, ...] = ()  # replaced as a whole, since another thread may be calling them
        self._handle: RemovableHandle | None = None
        self._is_hidden = False

    def add(
        self,
        hook: Callable[..., None],
        turn: AbstractContextManager[object] | None,
        note: Callable[[Exception], object],
        is_here: Callable[[], bool] = lambda: True,
    ) -> _Registered:
        added = _Registered(self, hook, turn or nullcontext(), note, is_here)
        with self._lock:
            self._all = (*self._all, added)
            if self._handle is None:
                self._handle = self._register(self._call)
                note_ours([self._handle])
                self._place()
        return added

    def remove(self, registered: _Registered) -> None:
        with self._lock:
            self._all = tuple(one for one in self._all if one is not registered)
            if not self._all and self._handle is not None:
                self._handle.remove()
                self._handle = None

    def are_alone(self) -> bool:
        """Return whether torch has no other hook of this kind."""
        with self._lock:
            hooks = None if self._handle is None else self._handle.hooks_dict_ref()
            return hooks is not None and len(hooks) == 1

    def hide(self) -> None:
        """Take the hook away for a while, also one that is added meanwhile."""
        with self._lock:
            self._is_hidden = True
            self._place()

    def show(self) -> None:
        """Put it back."""
        with self._lock:
            self._is_hidden = False
            self._place()

    def _place(self) -> None:
        """Have torch's dict contain the hook, unless it is hidden."""
        hooks = None if self._handle is None else self._handle.hooks_dict_ref()
        if hooks is None or self._handle is None:
            return
        if self._is_hidden:
            hooks.pop(self._handle.id, None)
        else:
            hooks.setdefault(self._handle.id, self._call)

    @passed_by
    def _call(self, *arguments: Any) -> None:
        if torch.compiler.is_compiling():  # it is traced, and does not happen yet
            return
        for one in self._all:
            if not one.is_here():
                continue
            with one.turn:
                try:
                    one.hook(*arguments)
                except Exception as error:  # the program must not see it
                    pass_on_interruption(error)
                    one.note(error)


def apart_from_program(hook: Callable[..., None], note: Callable[[Exception], object]) -> Callable[..., None]:
    """Return a hook that compiled code leaves out, and of which no error reaches the program.

    Args:
        hook: What to call.
        note: Called with an error of the hook; the program goes on.
    """

    @uncompiled
    def call(*arguments: Any) -> None:
        if torch.compiler.is_compiling():
            return
        try:
            hook(*arguments)
        except Exception as error:  # the program must not see it
            pass_on_interruption(error)
            note(error)

    return call


@contextmanager
def optimizer_steps(
    *,
    before: Callable[..., None] | None = None,
    after: Callable[..., None] | None = None,
    note: Callable[[Exception], object],
    turn: AbstractContextManager[object] | None = None,
    is_here: Callable[[], bool] = lambda: True,
) -> Iterator[None]:
    """Listen to each step of every optimizer.

    Args:
        before: Called by torch before each step, on its thread.
        after: Called after it.
        note: Called with an error of a listener; the program goes on.
        turn: A lock that all of them hold.
        is_here: Whether to call them for a step on this thread; asked before they wait for their turn.
    """
    added = [] if before is None else [_STEP_BEGINS.add(before, turn, note, is_here)]
    added += [] if after is None else [_STEP_ENDS.add(after, turn, note, is_here)]
    try:
        yield
    finally:
        for one in added:
            one.remove()


def hide_hooks() -> None:
    """Let torch.compile see no hooks of ours: it would trace them, guard on them, and compile again without them."""
    for hooks in _OURS:
        hooks.hide()


def show_hooks() -> None:
    """Put back the hooks that were hidden."""
    for hooks in _OURS:
        hooks.show()


def is_step_hooked(optimizer: Any) -> bool:
    """Return whether torch runs hooks around the steps of an optimizer.

    Source: torch/optim/optimizer.py, `_patch_step_function`, torch 2.13.
    """
    return bool(getattr(getattr(type(optimizer), "step", None), "hooked", False))


def runs_hooks_of_program(optimizer: Any) -> bool:
    """Return whether a step of an optimizer also runs hooks that are not ours, or may do so.

    Source: torch/optim/optimizer.py, `profile_hook_step`, torch 2.13.
    """
    own = (getattr(optimizer, name, True) for name in ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks"))
    return any(own) or not (_STEP_BEGINS.are_alone() and _STEP_ENDS.are_alone())


@contextmanager
def registrations(
    on_module: Callable[..., None],
    on_parameter: Callable[..., None],
    *,
    note: Callable[[Exception], object],
    turn: AbstractContextManager[object],
) -> Iterator[None]:
    """Listen to each module and parameter that becomes part of a module, as `optimizer_steps` does."""
    added = [_MODULE_ADDED.add(on_module, turn, note), _PARAMETER_ADDED.add(on_parameter, turn, note)]
    try:
        yield
    finally:
        for one in added:
            one.remove()


def hooks_were_made() -> bool:
    """Return whether any hook except ours was made since this module was imported."""
    return num_hooks_made() != 0


def num_hooks_made() -> int | None:
    """Count the hooks that others made since this module was imported; None if this torch does not."""
    return RemovableHandle.next_id - _IDS_AT_IMPORT - _Ours.number if _NEXT_ID.is_there else None


@contextmanager
def hooks_can_be_read() -> Iterator[bool]:
    """Enable `node_hooks`; False if this torch does not allow it, or if there cannot be any hook."""
    if not (_REGISTER.is_there and _HOLDER.is_there and hooks_were_made()):
        yield False
        return
    with patched(Patch(_HOLDER.value, "_register_hook", _answering)):
        yield True


def node_hooks(node: Any, kind: Literal["pre", "post"]) -> Hooks:
    """Return the hooks registered with `node.register_prehook` or `node.register_hook`, inside `hooks_can_be_read`."""
    question = _Question()
    try:
        register = type(node).register_prehook if kind == "pre" else type(node).register_hook  # NOTE [A ctx is a node]
        handle = register(node, question)
    except _AnsweredError:
        return question.answer or {}
    except Exception:  # some kinds of nodes cannot be read
        return {}
    handle.remove()  # another wrapper of the registration bypassed ours
    return {}


def tensor_hooks(tensor: torch.Tensor) -> tuple[Hooks, Hooks]:
    """Return the hooks on a tensor itself, and those that run after its gradient is accumulated."""
    return (
        (getattr(tensor, "_backward_hooks", None) or {}) if _OF_TENSOR.is_there else {},
        (getattr(tensor, "_post_accumulate_grad_hooks", None) or {}) if _AFTER_GRAD.is_there else {},
    )


def module_hooks(module: Any) -> tuple[list[Any], list[Any]]:
    """List the hooks on a module itself: those around its forward, and those around its backward."""
    members = vars(module)
    forward, backward = (
        [hook for kind in kinds for hook in dict(members.get(kind) or {}).values()]
        for kinds in (("_forward_pre_hooks", "_forward_hooks"), ("_backward_pre_hooks", "_backward_hooks"))
    )
    return forward, backward


_IDS_AT_IMPORT = RemovableHandle.next_id if _NEXT_ID.is_there else 0
_STEP_BEGINS = _OurHooks(register_optimizer_step_pre_hook)
_STEP_ENDS = _OurHooks(register_optimizer_step_post_hook)
_MODULE_ADDED = _OurHooks(register_module_module_registration_hook)
_PARAMETER_ADDED = _OurHooks(register_module_parameter_registration_hook)
_OURS = (_STEP_BEGINS, _STEP_ENDS, _MODULE_ADDED, _PARAMETER_ADDED)
