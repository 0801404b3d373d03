"""The call of torch whose error ended the program, and the tensors of its statement.

NOTE [Errors of torch]
An error counts only if torch raised it: the program's own innermost line does not raise, and what it called is torch's.
Where the error comes from that line itself, from code in C, the statement names a tensor, or a function of torch. Names
are looked up without running code of the program.
"""

import ast
import dis
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from inspect import getattr_static
from itertools import islice
from pathlib import Path
from pickle import UnpicklingError
from types import FrameType, ModuleType, TracebackType
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from gradinspect.checks.evidence.failures.copied import is_of_copying, refused_copy
from gradinspect.checks.evidence.failures.inside import (
    ARGUMENT,
    MAX_LISTS,
    MAX_SHARED,
    Layer,
    constructed_class,
    failed_layer,
    made_schedule,
    misfit_state,
    shared_parameters,
    unregistered_lists,
)
from gradinspect.checks.evidence.lines.made_objects import iterator_in
from gradinspect.checks.evidence.training.gradient_use import gradient_of, held_by
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.evidence.values.emptied import ITERATORS
from gradinspect.checks.evidence.values.missing_gradient import names_of
from gradinspect.checks.facts.failures import FailedCall, FailedIterator, FailedTensor
from gradinspect.checks.facts.value_flow import OUTSIDE, ancestors
from gradinspect.errors import text_of
from gradinspect.graph import Frame
from gradinspect.recording.frames import is_own_file, line_of_step, line_record, source_line
from gradinspect.recording.names.variables import isinstance_safely, own_variables
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.source_structure import assignment_before, first_read, last_line
from gradinspect.recording.source_text import lines_of
from gradinspect.syntax import parse
from gradinspect.torch_api.modules import own_buffers, own_children, own_parameters
from gradinspect.torch_api.patching.originals import ops
from gradinspect.torch_api.tensors import is_leaf, plain_tensors_only

_KINDS = (RuntimeError, ValueError, IndexError)
_KINDS_INSIDE = (*_KINDS, TypeError, AttributeError, AssertionError, UnpicklingError)  # raised by torch's Python code
_TYPE_ERROR = re.compile(
    r"\btensors?\b|must be Tensor, not|np\.ndarray of type|^[\w.]+\(\) (?:missing|got an unexpected)"
)
_OBJECTS = (nn.Module, torch.Tensor)
_TORCH = str(Path(torch.__file__).parent)
MAX_TENSORS = 6
MAX_NUMBERS = 10**7  # of which the extremes are looked for
_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
_COLOR = re.compile(r"\x1b\[[\d;]*m")
MAX_TEXT = 4000  # characters of an error
SHORT = 60  # characters of a sentence that may need the next one
_VOWELS = tuple("AEIOU")


def failed_call(
    error: BaseException,
    flow: Dataflow,
    recorder: Recorder,
    folder: Path,
    origin: Callable[[Any], int | None] = lambda _object: None,
) -> FailedCall | None:
    """Return the call of torch that raised an error; None if something else did. NOTE [Errors of torch].

    Args:
        error: What ended the program.
        flow: The flow of values.
        recorder: Has the frames.
        folder: Files below it are named relative to it.
        origin: Returns the frame that made a parameter or an optimizer.
    """
    text = _text(error)
    if not _may_be_of_torch(error, text):
        return None
    steps = list(_steps(error.__traceback__))
    own = [place for place, step in enumerate(steps) if is_own_file(_file(step))]
    if not own or _raises(steps[own[-1]]):
        return None
    last, deeper = steps[own[-1]], steps[own[-1] + 1 :]
    frames = [step.tb_frame for step in deeper]
    empty = () if deeper else tuple(_without_gradient(last, text))
    is_of_torch = all(_file(step).startswith(_TORCH) or is_of_copying(_file(step)) for step in deeper)
    is_sure = isinstance(error, _KINDS) or (type(error) is TypeError and _TYPE_ERROR.search(text) is not None)
    if not is_of_torch or not (deeper or empty or is_sure):
        return None
    with plain_tensors_only():
        refused = next(_refusing(last), None)
        values = _values(last)
        layer = failed_layer(frames, values)
        copied = refused_copy(frames, values)
        if deeper and copied is None and is_of_copying(_file(deeper[0])):
            return None
        given, own_ones = [*_named(values), *(() if layer is None else layer.given)], list(_weights(values, layer))
        named = [*empty] or ([copied] if copied is not None else [*given, *own_ones])
        tensors = tuple(_described(named, {id(one) for _, one in own_ones}, flow, recorder, folder))
        tensors = tensors or tuple(_sparse(refused, last, recorder, folder, origin))
        shared = tuple(islice(shared_parameters(frames, last.tb_frame), MAX_SHARED))
        misfit = misfit_state(frames, last.tb_frame)
        lists = () if tensors or shared else tuple(islice(unregistered_lists(values), MAX_LISTS))
    iterators = () if tensors or shared else tuple(_used_up(last, folder))
    if not (tensors or iterators or deeper or _calls_torch(last)):
        return None
    caller = steps[own[-2]] if len(own) > 1 else None
    return FailedCall(
        error=_first_words(text),
        frame=_line(last, folder),
        called=None if caller is None else _line(caller, folder),
        tensors=tensors,
        created=None if refused is None else recorder.frames.record(origin(refused), folder),
        loader=recorder.frames.record(_loader(frames, () if layer is None else layer.given, flow), folder),
        schedule=made_schedule(frames, folder),
        iterators=iterators,
        layer="" if layer is None else f"{layer.name}, {_with_article(type(layer.module).__name__)}",
        layer_made=None if layer is None else recorder.frames.record(_made(layer.module, origin), folder),
        shared=shared,
        misfit=misfit,
        unregistered=lists,
        lacks_gradient=bool(empty),
        refuses_copy=copied is not None,
        text=text[:MAX_TEXT],
        constructed=constructed_class(frames),
    )


def _with_article(name: str) -> str:
    return f"{'an' if name.startswith(_VOWELS) else 'a'} {name}"


def _made(module: torch.nn.Module, origin: Callable[[Any], int | None]) -> int | None:
    """Return the frame that made a module, or the first of its parameters, if it was copied or loaded."""
    made = (origin(one) for one in (module, *own_parameters(module).values()) if isinstance(one, _OBJECTS))
    return next((one for one in made if one is not None), None)


def _loader(frames: Iterable[FrameType], given: Iterable[tuple[str, torch.Tensor]], flow: Dataflow) -> int | None:
    """Return the frame that made the DataLoader which was making a batch, or has made what a layer was given."""
    innermost = next(iter(reversed([*frames])), None)
    iterator = iterator_in(innermost)
    if iterator is not None:
        return flow.origins.of(flow.origins.loader_of(iterator))
    return flow.origins.of_batch(behind for _, one in given for behind in ancestors(flow.calls, flow.read(one).call))


def _text(error: BaseException) -> str:
    """Return what an error says, without colors; that of a KeyError is shown as a key otherwise."""
    key = error.args[0] if type(error) is KeyError and error.args else None
    return _COLOR.sub("", key if type(key) is str else text_of(error))


def _may_be_of_torch(error: BaseException, text: str) -> bool:
    """Return whether torch raises errors of this kind: a lack of memory is another question."""
    is_kind = isinstance(error, _KINDS_INSIDE) or (type(error) is KeyError and "param_groups" in text)
    return is_kind and not isinstance(error, torch.OutOfMemoryError)


def _first_words(text: str) -> str:
    """Return the first sentence, with the second one if the first is short: `Tried to step 4 times. The ...`."""
    first, *others = " ".join(text.split()).split(". ")
    whole = ". ".join((first, *others[:1])) if len(first) < SHORT else first
    return whole.rstrip(".")


def _calls_torch(step: TracebackType) -> bool:
    """Return whether a statement names torch, or something that is defined there, and no other module."""
    packages = set[str]()
    for node in _names_in(_file(step), line_of_step(step)):
        while isinstance(node, ast.Attribute):
            node = node.value  # noqa: PLW2901  # the name that the chain begins with
        value = _value(node, step.tb_frame)
        name = value.__name__ if type(value) is ModuleType else getattr_static(value, "__module__", None)
        if type(name) is str and (type(value) is ModuleType or name.startswith("torch.")):
            packages.add(name.partition(".")[0])
    return packages == {"torch"}


def _steps(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _file(step: TracebackType) -> str:
    return step.tb_frame.f_code.co_filename


def _line(step: TracebackType, folder: Path) -> Frame:
    return line_record(step.tb_frame.f_code, line_of_step(step), folder)


def _raises(step: TracebackType) -> bool:
    """Return whether a line raises by itself: `raise` or `assert`."""
    return step.tb_frame.f_code.co_code[step.tb_lasti] == dis.opmap["RAISE_VARARGS"]


def _described(
    named: Iterable[tuple[str, torch.Tensor]], weights: Container[int], flow: Dataflow, recorder: Recorder, folder: Path
) -> Iterator[FailedTensor]:
    seen: dict[int, torch.Tensor] = {}
    for name, tensor in named:
        if id(tensor) in seen or len(seen) == MAX_TENSORS:
            continue
        seen[id(tensor)] = tensor
        call = flow.read(tensor).call
        number = None if call == OUTSIDE else flow.calls[call].frame
        yield FailedTensor(
            name=name,
            dtype=str(tensor.dtype).removeprefix("torch."),
            shape=tuple(tensor.shape),
            device=str(tensor.device),
            is_trained_leaf=tensor.requires_grad and is_leaf(tensor),
            is_integer=not (ops.is_floating_point(tensor) or ops.is_complex(tensor)),
            extremes=_extremes(tensor),
            is_argument=name.startswith(ARGUMENT),
            is_of_module=id(tensor) in weights,
            made=None if number is None else recorder.frames.record(number, folder),
            off=_switched_off(call, flow, recorder, folder) if ops.is_inference(tensor) else None,
        )


def _extremes(tensor: torch.Tensor) -> tuple[int, int] | None:
    """Return the least and the greatest number of plain integers in memory, as labels and indices are."""
    is_plain = type(tensor) is torch.Tensor and tensor.layout is torch.strided and tensor.device.type == "cpu"
    if not is_plain or tensor.dtype not in _INTEGERS or not 0 < ops.numel(tensor) <= MAX_NUMBERS:
        return None
    try:
        return int(ops.item(ops.min(tensor))), int(ops.item(ops.max(tensor)))
    except RuntimeError:  # inside a transform, whose tensors have no values to read
        return None


def _refusing(step: TracebackType) -> Iterator[Optimizer]:
    """Yield the optimizers that a statement names."""
    for node in _names_in(_file(step), line_of_step(step)):
        for part in ast.walk(node):
            value = _value(part, step.tb_frame) if isinstance(part, ast.expr) else None
            if isinstance_safely(value, (Optimizer,)):
                yield value


def _sparse(
    optimizer: Optimizer | None,
    step: TracebackType,
    recorder: Recorder,
    folder: Path,
    origin: Callable[[Any], int | None],
) -> Iterator[FailedTensor]:
    """Yield the parameters of an optimizer that have a sparse gradient."""
    held = [] if optimizer is None else held_by(optimizer)
    sparse = [one for one in held if (gradient := gradient_of(one)) is not None and gradient.layout is torch.sparse_coo]
    for name, one in list(zip(names_of(sparse, recorder, step.tb_frame), sparse, strict=True))[:MAX_TENSORS]:
        yield FailedTensor(
            name=name,
            dtype=str(one.dtype).removeprefix("torch."),
            shape=tuple(one.shape),
            device=str(one.device),
            is_trained_leaf=True,
            is_integer=False,
            has_sparse_gradient=True,
            made=recorder.frames.record(origin(one), folder),
        )


def _used_up(step: TracebackType, folder: Path) -> Iterator[FailedIterator]:
    """Yield the iterators that a statement names and an earlier line has read: one can be gone through once."""
    file, line = _file(step), line_of_step(step)
    for node in _names_in(file, line):
        if not isinstance(node, ast.Name) or type(_value(node, step.tb_frame)) not in ITERATORS:
            continue
        made = assignment_before(file, node.id, line)
        read = None if made is None else first_read(file, node.id, last_line(made), line)
        if made is not None and read is not None:
            yield FailedIterator(
                name=node.id,
                value=ast.unparse(made.value),
                made=source_line(file, made.lineno, folder),
                read=source_line(file, read, folder),
            )


def _switched_off(call: int, flow: Dataflow, recorder: Recorder, folder: Path) -> Frame | None:
    """Return the line of the scope in which the first of the calls ran that a tensor was computed from."""
    off = min((one for one in ancestors(flow.calls, call) if flow.calls[one].is_off), default=None)
    number = None if off is None else flow.switched_off_at(off)
    return None if number is None else recorder.frames.record(number, folder)


def _values(step: TracebackType) -> dict[str, Any]:
    """Return what a statement names, as it writes it."""
    return {ast.unparse(node): _value(node, step.tb_frame) for node in _names_in(_file(step), line_of_step(step))}


def _named(values: Mapping[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensors that a statement names."""
    yield from ((written, value) for written, value in values.items() if isinstance(value, torch.Tensor))


def _weights(values: Mapping[str, Any], layer: Layer | None) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the first parameter of each module that a statement names, and of the layer in which it failed."""
    modules = [(written, value) for written, value in values.items() if isinstance(value, nn.Module)]
    for name, module in (*modules, *(() if layer is None else ((layer.name, layer.module),))):
        found = ((own, one) for own, one in own_parameters(module).items() if isinstance(one, torch.Tensor))
        yield from ((f"{name}.{own}", one) for own, one in islice(found, 1))


def _without_gradient(step: TracebackType, error: str) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the leaves of which a statement reads `.grad`, as Python refuses None there."""
    for node in _names_in(_file(step), line_of_step(step)) if "'NoneType'" in error else ():
        for part in ast.walk(node):
            is_read = isinstance(part, ast.Attribute) and part.attr == "grad"
            value = _value(part.value, step.tb_frame) if is_read else None  # type: ignore[attr-defined]  # it is one
            if isinstance(value, torch.Tensor) and _lacks_gradient(value):
                yield ast.unparse(part.value), value  # type: ignore[attr-defined]  # as above


def _lacks_gradient(tensor: torch.Tensor) -> bool:
    return tensor.requires_grad and is_leaf(tensor) and gradient_of(tensor) is None


def _names_in(file: str, line: int) -> list[ast.expr]:
    """List the names and attributes that the statement on a line reads, the longest of each chain only."""
    try:
        tree = parse("".join(lines_of(file)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    around = [
        node for node in ast.walk(tree) if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    if not around:
        return []
    statement = min(around, key=lambda node: (node.end_lineno or 0) - node.lineno)
    is_block = hasattr(statement, "body")  # its own line only
    nodes = [one for one in _read_in(statement) if not is_block or one.lineno == line]
    inner = {id(one.value) for one in nodes if isinstance(one, ast.Attribute)}
    return [one for one in nodes if id(one) not in inner or isinstance(one, ast.Name)]


def _read_in(statement: ast.stmt) -> Iterator[ast.Name | ast.Attribute]:
    """Yield the names and attributes that a statement reads, not `y` of `y = f(x)`: it is not yet what this makes."""
    changed = {id(one.target) for one in ast.walk(statement) if isinstance(one, ast.AugAssign)}
    for one in ast.walk(statement):
        if isinstance(one, (ast.Name, ast.Attribute)) and (id(one) in changed or not isinstance(one.ctx, ast.Store)):
            yield one


def _value(node: ast.expr, frame: FrameType) -> Any:
    """Look up a name or an attribute, without running code."""
    if isinstance(node, ast.Name):
        code, variables = frame.f_code, own_variables(frame)
        is_local = node.id in (*code.co_varnames, *code.co_cellvars, *code.co_freevars)
        return variables.get(node.id) if is_local else variables.get(node.id, frame.f_globals.get(node.id))
    if not isinstance(node, ast.Attribute):
        return None
    base = _value(node.value, frame)
    if isinstance(base, nn.Module):
        held = {**own_buffers(base), **own_parameters(base), **own_children(base)}
        return held.get(node.attr, vars(base).get(node.attr))
    try:
        return object.__getattribute__(base, "__dict__").get(node.attr)
    except Exception:  # without attributes
        return None
