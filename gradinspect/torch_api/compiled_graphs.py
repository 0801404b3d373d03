"""The backward graph of a `CompiledFunctionBackward` node, as AOTAutograd made it, before any backend changed it.

NOTE [Backward graphs]
torch compiles a backward only when it is needed, and keeps the graph for it; it stays there afterwards. Reading it
changes nothing. It is not there with a backend that does not use AOTAutograd. If the compiled code came from a cache
of an earlier run, there is the text of the graph, as torch.fx writes it, without modules, lines and shapes. torch
would run that text to get a graph, and with it each operator that is given no tensor, such as `rand`; so it is only
parsed. The arguments of the graph are, in this order, the symbolic sizes that the node keeps, its saved tensors,
those that torch does not check for changes, other objects, and the gradients of the forward outputs.
Source: torch/_functorch/_aot_autograd/runtime_wrappers.py, torch 2.13.
"""

import ast
import re
from contextlib import suppress
from operator import getitem
from typing import Any, NamedTuple, TypeGuard

import torch
from torch import fx

from gradinspect.torch_api.fakes import fake_tensor_mode
from gradinspect.torch_api.flops import operator_flops
from gradinspect.torch_api.nodes import function_class
from gradinspect.torch_api.operators import shows_its_arguments
from gradinspect.torch_api.patching.originals import ops
from gradinspect.torch_api.tensors import key_of_storage

_INFO = "_lazy_backward_info"  # of the class that torch.compile makes for each compiled graph
COMPILED_NODE = "CompiledFunctionBackward"
UNCHECKED = "_tensors_no_vc_check"  # an attribute of its nodes


class BackwardGraph(NamedTuple):
    """What is computed when a compiled node runs."""

    saved: list[Any]  # the argument for each saved tensor
    operators: list[Any]  # calls in the order in which they run
    results: list[Any]  # for each input of the forward, the call or argument with its gradient; None: it needs none


def backward_graph(node: Any, num_saved: int) -> BackwardGraph | None:
    """Read the graph behind a live node of torch.compile; None if it is not there. NOTE [Backward graphs].

    Args:
        node: The live node.
        num_saved: How many tensors it keeps, those that are not checked included.
    """
    info = getattr(function_class(node), _INFO, None)
    module = getattr(info, "bw_module", None)
    graph = _cached(info) if module is None else module.graph
    if graph is None:
        return None
    calls = list(graph.nodes)
    arguments = [one for one in calls if one.op == "placeholder"]
    num_symbols = len(vars(node).get("symints", ()))
    saved = arguments[num_symbols : num_symbols + num_saved]
    (output,) = (one for one in calls if one.op == "output")
    results = [one if hasattr(one, "meta") else None for one in output.args[0]]
    return BackwardGraph(saved, [one for one in calls if is_operator(one)], results)


def unchecked_tensors(node: Any) -> list[Any]:
    """List the tensors that a compiled node keeps besides its saved ones; torch does not check them for changes."""
    return list(vars(node).get(UNCHECKED, ()))


class _Named(NamedTuple):
    """An operator of which only the name is known."""

    overloadpacket: str

    def __call__(self) -> None:
        """Do nothing: torch.fx takes nothing else than what can be called."""


def _cached(info: Any) -> fx.Graph | None:
    """Build the graph that torch took from its cache, and run none of it; None: there is none."""
    stored = getattr(getattr(info, "bw_module_fn", None), "__self__", None)
    parts = next(iter(getattr(stored, "args", ())), None)
    text = parts.get("_code") if isinstance(parts, dict) else None
    if not isinstance(text, str):
        return None
    with suppress(SyntaxError, ValueError, TypeError, RuntimeError):  # a form of text that is not known here
        (function,) = ast.parse(text.strip()).body
        return _Text().graph(function) if isinstance(function, ast.FunctionDef) else None
    return None


class _Text:
    """Builds a graph from its text, statement by statement; arguments that are not results stay text."""

    def __init__(self) -> None:
        self._graph = fx.Graph()
        self._results: dict[str, Any] = {}

    def graph(self, function: ast.FunctionDef) -> fx.Graph:
        for argument in function.args.args[1:]:  # the first is the module
            self._results[argument.arg] = self._graph.placeholder(argument.arg)
        for statement in function.body:
            if isinstance(statement, ast.Return) and statement.value is not None:
                self._graph.output(self._value(statement.value))
            elif isinstance(statement, ast.Assign) and not _is_deletion(statement):
                (target,) = statement.targets
                self._results[ast.unparse(target)] = self._result(statement.value, ast.unparse(target))
        return self._graph

    def _result(self, value: ast.expr, name: str) -> Any:
        """Add the node of a statement."""
        match value:
            case ast.Call():
                target, arguments = _Named(_packet(ast.unparse(value.func))), value.args
                rest = {one.arg: self._value(one.value) for one in value.keywords if one.arg is not None}
                return self._added(target, [self._value(one) for one in arguments], name, rest)
            case ast.Subscript():
                return self._added(getitem, [self._value(value.value), self._value(value.slice)], name)
            case ast.Attribute():  # a part of the module
                return self._graph.create_node("get_attr", name, (), {}, name)
            case _:  # arithmetic of sizes
                kind = type(getattr(value, "op", value)).__name__.lower()
                target = _Named("mul" if kind == "mult" else kind)  # as `operator` calls it
                return self._added(target, [self._value(one) for one in ast.walk(value) if _is_name(one)], name)

    def _added(self, target: Any, arguments: Any, name: str, rest: dict[str, Any] | None = None) -> fx.Node:
        return self._graph.create_node("call_function", target, tuple(arguments), rest or {}, name)

    def _value(self, value: ast.expr) -> Any:
        if isinstance(value, ast.List | ast.Tuple):
            return [self._value(one) for one in value.elts]
        if isinstance(value, ast.Constant) and (value.value is None or isinstance(value.value, bool | int | float)):
            return value.value
        text = ast.unparse(value)
        return self._results.get(text, text)


def _is_name(value: ast.AST) -> TypeGuard[ast.expr]:
    return isinstance(value, ast.Name)


def _is_deletion(statement: ast.Assign) -> bool:
    return isinstance(statement.value, ast.Constant) and statement.value.value is None


def _packet(name: str) -> str:
    """Return `aten.mul` of `torch.ops.aten.mul.Tensor`, and the last part of other names."""
    parts = name.removeprefix("torch.ops.").split(".")
    is_operator_of_torch = name.startswith("torch.ops.") and parts[0] != "higher_order"
    return ".".join(parts[:2]) if is_operator_of_torch else parts[-1]


def is_stripped(graph: BackwardGraph) -> bool:
    """Return whether all notes on its operators are gone: torch removes them when it writes the graph to a cache.

    Source: torch/_functorch/_aot_autograd/aot_autograd_result.py serialize_graph_module, torch 2.13.
    """
    return bool(graph.operators) and not any(call.meta for call in graph.operators)


def is_operator(call: Any) -> bool:
    """Return whether this computes something, rather than being given, returned, or a part of a result."""
    return call.op == "call_function" and call.target is not getitem


def users_of(call: Any) -> list[Any]:
    """List what uses the result of a call, or a part of it, in the order in which it runs."""
    found: dict[Any, None] = {}
    for user in call.users:
        is_part = user.op == "call_function" and user.target is getitem
        found.update(dict.fromkeys(users_of(user) if is_part else [user]))
    return list(found)


def whole_of(call: Any) -> Any:
    """Return the call whose result this is a part of; itself, if it is whole."""
    while call.op == "call_function" and call.target is getitem:
        call = call.args[0]
    return call


def operator_name(call: Any) -> str:
    """Name an operator as `aten.mm`; its overload belongs to what it was called with."""
    packet = getattr(call.target, "overloadpacket", None)
    return str(packet) if packet is not None else getattr(call.target, "__name__", str(call.target))


def maker_name(argument: Any) -> str | None:
    """Name the operator of the forward that made a saved tensor; None of an input of the forward."""
    made = argument.meta.get("original_aten")
    return None if made is None else str(getattr(made, "overloadpacket", made))


def is_given(argument: Any) -> bool:
    """Return whether a saved tensor is an input of the forward: torch's cache keeps no more of it than its name.

    Source: torch/_functorch/partitioners.py, torch 2.13.
    """
    return maker_name(argument) is None and (bool(argument.meta) or str(argument.name).startswith("primals"))


def maker_overload(call: Any) -> str | None:
    """Name the operator of eager that a call is a part of, as in its schema: `mul.Tensor`, `gelu`; None: of none."""
    made = call.meta.get("original_aten")
    return None if made is None else str(made).removeprefix("aten.").removesuffix(".default")


def is_undecomposed(call: Any) -> bool:
    """Return whether what is given was made by an operator of eager itself, not by one of those it is composed of."""
    made = str(maker_name(call)).rpartition(".")[2]
    return re.fullmatch(rf"{re.escape(made)}(_\d+)?", str(call.name)) is not None


def is_of_eager(call: Any) -> bool:
    """Return whether a call is one that eager makes too: it was not decomposed."""
    return str(call.target) == str(call.meta.get("original_aten"))


def is_view(argument: Any) -> bool:
    """Return whether what is given was made by an operator whose results share memory with its arguments."""
    made = argument.meta.get("original_aten")
    return hasattr(made, "_schema") and shows_its_arguments(made)


def forward_number(call: Any) -> int | None:
    """Return the number of the forward operator that a call belongs to; its backward has the same."""
    number = call.meta.get("seq_nr")
    return None if number is None else int(number)


def is_random(call: Any) -> bool:
    """Return whether a call draws random numbers, those of the generator as it then is.

    Where a checkpoint asks for the same numbers again, torch wraps the operator in another, which sets the generator.
    Source: torch/_functorch/partitioners.py `functionalize_rng_ops`, torch 2.13.
    """
    return torch.Tag.nondeterministic_seeded in getattr(call.target, "tags", ())


def is_checkpointed(call: Any) -> bool:
    """Return whether a call belongs to what the program checkpoints."""
    return call.meta.get("recompute") is not None


def is_mask_on_cpu(call: Any) -> bool:
    """Return whether a result is of booleans, on the CPU."""
    value = call.meta.get("val")
    return isinstance(value, torch.Tensor) and value.dtype == torch.bool and value.device.type == "cpu"


def results_of(call: Any) -> tuple[Any, ...]:
    """Return the fake tensors that stand for what a call computes."""
    value = call.meta.get("val")
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def stack_of(call: Any) -> str:
    """Return the text of the stack of the forward operator that a call belongs to."""
    return call.meta.get("stack_trace") or ""


def modules_of(call: Any) -> list[tuple[int, str, str]]:
    """List the modules around the forward operator that a call belongs to: identity, path and class."""
    stack = call.meta.get("fwd_nn_module_stack") or call.meta.get("nn_module_stack") or {}
    identities = (key.partition("@")[0] for key in stack)
    return [
        (int(identity) if identity.isdigit() else 0, path, getattr(kind, "__name__", str(kind)))
        for identity, (path, kind) in zip(identities, stack.values(), strict=True)
    ]


def is_recomputed(call: Any) -> bool:
    """Return whether a call computes again what the forward has computed, and did not keep."""
    return bool(call.meta.get("partitioner_tag") == "is_forward")


def forward_name(call: Any) -> str | None:
    """Name the function of the forward that a call belongs to: `linear`, `gelu`."""
    stack = call.meta.get("fwd_source_fn_stack") or call.meta.get("source_fn_stack") or ()
    if not stack:
        return None
    name, function = stack[-1]
    return getattr(function, "__name__", str(name))


def storages_of(call: Any) -> dict[int, int]:
    """Return the storages of what a call computes, and their bytes, by keys that hold within a pair of graphs."""
    found: dict[int, int] = {}
    for one in results_of(call):
        if isinstance(one, torch.Tensor):
            with suppress(RuntimeError, NotImplementedError):  # it has none: sparse
                storage = ops.untyped_storage(one)
                found[key_of_storage(storage)] = _hint(storage.nbytes())
    return found


def _hint(size: Any) -> int:
    """Return a size, or what a symbolic one was when its graph was traced; nothing guards on it."""
    return size if isinstance(size, int) else int(size.node.hint)


def arguments_of(call: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return what a call is given, with fake tensors of the sizes that its graph was traced with."""
    return fx.map_arg(call.args, _hinted), fx.map_arg(call.kwargs, _hinted)


def _hinted(call: Any) -> Any:
    value = call.meta.get("val")
    if isinstance(value, torch.SymInt):
        return _hint(value)
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return value
    sizes = (*value.shape, *ops.stride(value))
    if all(type(size) is int for size in sizes):
        return value
    shape, stride = (tuple(map(_hint, some)) for some in (value.shape, ops.stride(value)))
    with fake_tensor_mode():
        return torch.empty_strided(shape, stride, dtype=value.dtype, device=value.device)


def flops_of(call: Any) -> int:
    """Return the floating point operations of a call; 0, if torch has no formula for them."""
    try:
        arguments = [_shaped(one) for one in call.args]
        out = [_shaped(one) for one in results_of(call)]
        name = operator_name(call).rpartition(".")[2]
        return operator_flops(name, *arguments, out=out[0] if len(out) == 1 else tuple(out)) or 0
    except (AttributeError, TypeError):  # an argument that is no plain value, or a size without a hint
        return 0


def _shaped(value: Any) -> Any:
    """Put shapes in the place of tensors."""
    value = value.meta.get("val") if hasattr(value, "meta") else value
    if isinstance(value, torch.Tensor):
        return tuple(_hint(size) for size in value.shape)
    return tuple(map(_shaped, value)) if isinstance(value, list | tuple) else value
