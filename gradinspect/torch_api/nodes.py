"""Properties of a live node (`grad_fn`): its number, its outputs, its class.

The classes of torch's nodes are attributes of `torch._C._functions`, so attributes of nodes are probed on one of those
classes: nothing is run for it, and no node is made.
"""

import inspect
from collections.abc import Callable
from operator import attrgetter, methodcaller
from types import CodeType, FrameType
from typing import Any
from weakref import ref

import torch

from gradinspect.torch_api.patching.classes import module_of
from gradinspect.torch_api.patching.patches import Patch
from gradinspect.torch_api.probes import private

ACCUMULATE_GRAD_NR = 2**64 - 1  # the sequence number of every AccumulateGrad
UNKNOWN_NR = 2**64 - 2  # of a node whose number is unknown

_NUMBER = private("torch._C._functions.MulBackward0._sequence_nr", "modules and source lines are not shown")
_COUNTER = private("torch._C._autograd._get_sequence_nr", "modules and source lines are not shown")
_METADATA = private("torch._C._functions.MulBackward0._input_metadata", "shapes of forward outputs are not shown")
_GENERATED = private("torch._C._functions", "third-party operators are not distinguished from torch's own")
_PYTHON_NODE = private("torch._C._FunctionBase", "nodes of custom Functions are shown as opaque")
_HAS_NUMBERS = _NUMBER.is_there and _COUNTER.is_there


def _number_unknown(node: Any) -> int:
    return ACCUMULATE_GRAD_NR if type(node).__name__ == "AccumulateGrad" else UNKNOWN_NR


def _counter_unknown() -> int:
    return 0


def _no_metadata(_node: Any) -> Any:
    raise AttributeError("_input_metadata")


# The order of creation of a node, per thread; ACCUMULATE_GRAD_NR for AccumulateGrad.
sequence_nr: Callable[[Any], int] = methodcaller("_sequence_nr") if _HAS_NUMBERS else _number_unknown
# The number of the next node on this thread.
next_sequence_nr: Callable[[], int] = _COUNTER.value if _HAS_NUMBERS else _counter_unknown
# Shape, dtype and device of each output of the forward op. Raises AttributeError, RuntimeError or TypeError.
forward_metadata: Callable[[Any], Any] = attrgetter("_input_metadata") if _METADATA.is_there else _no_metadata


def require_sequence_numbers(by: str) -> None:
    """Check that nodes have numbers.

    Raises:
        GradInspectError: This torch has none, and a command needs them.
    """
    _NUMBER.required(by)
    _COUNTER.required(by)


def has_sequence_numbers() -> bool:
    """Return whether nodes have numbers."""
    return _HAS_NUMBERS


def has_forward_metadata() -> bool:
    """Return whether nodes have the shapes of their forward outputs."""
    return _METADATA.is_there


def is_generated_class(kind: type) -> bool:
    """Return whether this node class is generated from derivatives.yaml."""
    return getattr(_GENERATED.or_else(None), kind.__name__, None) is kind


def is_python_node(node: Any) -> bool:
    """Return whether a node belongs to a Python `autograd.Function`."""
    return _PYTHON_NODE.is_there and isinstance(node, _PYTHON_NODE.value)


def function_class(node: Any) -> Any:
    """Return the `autograd.Function` that a Python node belongs to."""
    return getattr(node, "_forward_cls", type(node))


def is_compiled_class(kind: Any) -> bool:
    """Return whether torch.compile made this `autograd.Function`; a torch.func transform makes others."""
    return bool(module_of(kind).startswith("torch._functorch._aot_autograd"))


def node_metadata(node: Any) -> dict[Any, Any]:
    """Return the dict that belongs to a node and lives as long as it; NOTE [A ctx is a node] in `recording.nodes`.

    Raises:
        AttributeError, RuntimeError: This node has none.
    """
    found: dict[Any, Any] = type(node).metadata.__get__(node)
    return found


def number_of_context(ctx: Any) -> int:
    """Return the number of the node that a `ctx` is, or becomes as soon as it is made. NOTE [Applied Functions]."""
    try:
        return sequence_nr(ctx)
    except RuntimeError:  # a torch that makes the node right after it
        return next_sequence_nr()


def contexts_patch(make: Callable[[Any], Any]) -> Patch:
    """Patch the `__init__` of the `ctx` of custom Functions.

    NOTE [Applied Functions]
    `Function.apply` makes the node, which is also the `ctx`, before it calls `forward`. It does so by calling the
    node's class, which is a class of Python: its `__init__`, which no class of torch has, runs in the frame that
    applied the Function. Only a Function for which no gradient is needed has its node destroyed again.

    Source: torch/csrc/autograd/python_function.cpp `THPFunction_apply`, torch 2.13.
    """
    return Patch(torch.autograd.function.BackwardCFunction, "__init__", make, is_inherited=True)


class ForwardFrames:
    """Finds the frames that are the `forward` of a custom Function, and their callers.

    NOTE [Who applied a Function]
    `Function.apply` has a frame on the stack up to torch 2.13, and none since 2.14. So a frame is identified by its
    code: that of the `forward` of a subclass of `autograd.Function`. A decorator's code is shared by everything it
    decorates, so the code below the decorators counts, and the caller of the outermost decorator applied the Function.
    """

    def __init__(self) -> None:
        """Start with no known classes."""
        self._chains: dict[CodeType, frozenset[CodeType]] = {}  # innermost code -> codes of its decorators
        self._seen: set[CodeType] = set()
        self._classes: dict[int, ref[type]] = {}  # NOTE [Classes by identity]

    def applied_from(self, frame: FrameType) -> FrameType | None:
        """Return the frame that called a forward and its decorators; None if this frame is not a forward."""
        code = frame.f_code
        if code not in self._seen:
            self._learn()
            self._seen.add(code)
        chain = self._chains.get(code)
        if chain is None:
            return None
        caller = frame.f_back
        while caller is not None and caller.f_code in chain:
            caller = caller.f_back
        return caller

    def _learn(self) -> None:
        """Collect the codes of new Function classes; torch alone has hundreds."""
        todo = type.__subclasses__(torch.autograd.Function)
        for kind in todo:
            todo.extend(type.__subclasses__(kind))
            known = self._classes.get(id(kind))
            if known is not None and known() is kind:
                continue
            self._classes[id(kind)] = ref(kind)
            codes = _codes_of(kind)
            if codes:
                self._chains[codes[-1]] = frozenset(codes[:-1])


def _codes_of(kind: Any) -> tuple[CodeType, ...]:
    """List the codes of a Function's forward: its decorators, outermost first, then its own."""
    codes = []
    function = inspect.getattr_static(kind, "forward", None)
    function = getattr(function, "__func__", function)
    while function is not None:
        code = getattr(function, "__code__", None)
        if isinstance(code, CodeType):
            codes.append(code)
        function = getattr(function, "__wrapped__", None)
    return tuple(codes)


def few_leaves_of(tensor: Any, max_nodes: int) -> list[Any]:
    """Return the leaves that a tensor was computed from; none if too many nodes lie between."""
    leaves, todo, seen = [], [tensor.grad_fn], set[Any]()
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if len(seen) > max_nodes:
            return []
        after = node.next_functions
        if after:
            todo += [next_node for next_node, _ in after]
        elif (leaf := getattr(node, "variable", None)) is not None:  # not asked of all nodes: most have none, slowly
            leaves.append(leaf)
    return leaves
