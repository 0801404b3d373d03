"""Compare what checkpoints compute again with what they have computed before, operator by operator.

NOTE [What is given again]
A second run gives the same only if each of its operators is given what the first run gave it: the same numbers, the
same tensors from outside with the same number of writes, and of what the run itself has made, the results of the same
operators. So wherever a program keeps what it goes on with, in a list, a global variable, a class, a closure, an
iterator, the second run shows it. It may leave operators out, whose results are still there: those that a selective
checkpoint keeps, and what a cache was filled with. What takes the statistics of torch's own norms, or what is made of
them alone, may be given others: the code that is pasted puts them back. Autocast keeps what it has converted until its
end, and converts it anew when a block runs again; so what is converted counts as what it was made of.

NOTE [What a second run leaves]
The program goes on with what modules, classes and global variables hold after the second run. An attribute that each
run writes anew, such as the last loss of a block, is as it was; a counter or a list that grows is not, and what is done
with it elsewhere is not known. So what a forward may go on with is compared before and after the second run.
"""

import ctypes
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import FrameType, FunctionType, MethodType
from typing import Any, NamedTuple, TypeAlias
from weakref import ref

import torch
import torch.utils.checkpoint
from torch import nn

from gradinspect.analyses.planning.code import PLAN_FILE
from gradinspect.observers.planning.carried_state import Carried, carried_state, line_that_changes
from gradinspect.recording.frames import line_at, line_name, own_frame
from gradinspect.recording.names.names import module_paths
from gradinspect.recording.names.variables import isinstance_safely
from gradinspect.recording.values.storages import plain_tensors, storage_of
from gradinspect.torch_api.modules import own_buffers
from gradinspect.torch_api.operators import is_mutable, operator_schemas, writes
from gradinspect.torch_api.patching.classes import is_one_of
from gradinspect.torch_api.patching.originals import ops
from gradinspect.torch_api.patching.patches import Patch
from gradinspect.torch_api.probes import private
from gradinspect.torch_api.tensors import key_of_storage, known_version, plain_tensors_only

PUT_BACK = ("running_mean", "running_var", "num_batches_tracked")  # of a batch norm
_FORWARDS = (nn.BatchNorm1d.forward, nn.SyncBatchNorm.forward, nn.InstanceNorm1d.forward)  # others inherit them
_COMPARED = (int, float, complex, bool, str, torch.dtype, torch.device, torch.layout, torch.memory_format)
_CONVERT = private("torch.ops.aten._to_copy.default", "plans checkpoint fewer modules under autocast")
_CONVERTS: Any = _CONVERT.or_else(None)
_SAME = torch.ops.aten.detach.default, torch.ops.aten.alias.default  # checkpoints call them too, in the second run
_MOST_BYTES = 2**16  # of data of the program, to be compared
_Key: TypeAlias = tuple[object, ...]


def is_put_back(module: nn.Module) -> bool:
    """Return whether a module's statistics are put back: it is a norm that runs as torch wrote it."""
    forward = type(module).forward
    return any(forward is one for one in _FORWARDS) and "forward" not in vars(module)


class _Storages:
    """Numbers storages, each for as long as it is alive. Holds none."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, Callable[[], object]]] = {}  # by key
        self._count = 0

    def number(self, tensor: torch.Tensor) -> int | None:
        """Return the number of a tensor's storage; None if it has none."""
        storage = storage_of(tensor)
        if storage is None:
            return None
        key = key_of_storage(storage)
        number, known = self._known.get(key, (0, None))
        if known is None or known() is not storage:
            self._count += 1
            number = self._count
            self._known[key] = number, ref(storage)
        return number


class _Operator(NamedTuple):
    """One that has run, and what it was given."""

    func: Any
    given: _Key


class _Run:
    """One run of a block."""

    def __init__(self, given: Mapping[int, int]) -> None:
        self.given = given  # number of a storage -> that of the argument
        self.made: dict[int, int] = {}  # number of a storage -> that of the operator that made it
        self.outside: set[int] = set()  # numbers of storages
        self.operators: list[_Operator] = []


class _Block:
    """What one call of a checkpoint runs: once in forward, and again in backward."""

    def __init__(self, runs: "SecondRuns", function: Callable[..., Any]) -> None:
        self._runs = runs
        self._function = function
        self._first: _Run | None = None
        self._next = 0  # operator of the first run that is expected next
        self.run: _Run | None = None
        self._before: list[tuple[nn.Module, dict[Carried, object]]] = []  # what may be gone on with

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with self._runs.running(self, (*args, *kwargs.values())):
            return self._function(*args, **kwargs)

    def begin(self, given: Mapping[int, int]) -> None:
        """Note that a run begins."""
        self._first = self._first or self.run
        self.run = _Run(given)
        self._next = 0
        if self._first is not None:
            self.run.made.update(self._first.made)
            self._before = [(module, carried_state(module)) for module in _modules_of(self._function)]

    def left(self) -> str:
        """Say what a second run has left that was not there before it: "it changes 'calls' of Block (model.py:12)"."""
        before, self._before = self._before, []
        for module, carried in before:
            now = carried_state(module)
            changed = next((key for key, value in carried.items() if now.get(key, value) != value), None)
            if changed is not None:
                line = line_that_changes(module, changed.name)
                return f"it changes {changed.label}" + (f" ({line})" if line else "")
        return ""

    def place_of(self, operator: _Operator) -> int | None:
        """Return the number of an operator in the first run; None: there it was not, or was given something else."""
        if self._first is None:
            return len(self.run.operators) if self.run is not None else None
        try:
            found = self._first.operators.index(operator, self._next)
        except ValueError:
            return None
        self._next = found + 1
        return found

    @property
    def is_first(self) -> bool:
        """Whether nothing is known yet to compare with."""
        return self._first is None


class _Running:
    """A run of a block. Use it as a context manager."""

    def __init__(self, stack: list[_Block], block: _Block, ended: Callable[[_Block], None]) -> None:
        self._stack, self._block, self._ended = stack, block, ended

    def __enter__(self) -> None:
        self._stack.append(self._block)

    def __exit__(self, *_error: object) -> None:
        self._stack.remove(self._block)
        self._ended(self._block)


class SecondRuns:
    """Watches the checkpoints of a plan; its `add` is an `OperatorListener`."""

    def __init__(self, note: Callable[[Exception], object]) -> None:
        """Start with none; `note` is called with an error of ours."""
        self.difference = ""  # the first one: "aten.mul is not given what it was given before (model.py:12)"
        self._note = note
        self._storages = _Storages()
        self._stack: list[_Block] = []
        self._norms: list[Callable[[], nn.Module | None]] = []
        self._put_back: set[int] = set()  # numbers of storages
        self._writes = Counter[int]()  # in blocks, by number of a storage
        self._converted: dict[int, _Key] = {}  # number of a storage -> what it was made of

    def patch(self, root: nn.Module) -> Patch:
        """Patch what the code of a plan imports to change the modules of an outermost one, while it does so."""
        self._norms += [ref(module) for _, module in module_paths(root) if is_put_back(module)]
        return Patch(torch.utils.checkpoint, "checkpoint", lambda original: partial(self._checkpoint, original))

    def running(self, block: _Block, args: Iterable[object]) -> _Running:
        """Begin a run of a block."""
        try:
            with plain_tensors_only():
                block.begin(dict(self._numbered(args)))
                self._put_back = set(self._statistics())
        except Exception as error:  # the program must not see it
            self._note(error)
        return _Running(self._stack, block, self._has_ended)

    def _has_ended(self, block: _Block) -> None:
        try:
            left = block.left()
        except Exception as error:  # the program must not see it
            self._note(error)
            return
        if left:
            self.difference = self.difference or f"When it runs again, {left}, with which the program may go on."

    def add(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> None:
        """Compare an operator that has run."""
        if self.difference or func in _SAME or not (self._stack or func is _CONVERTS):
            return
        with plain_tensors_only():
            given = (*args, *kwargs.values())
            if func is _CONVERTS and self._convert(given, result):
                return
            for block in self._stack:
                self._compare(block, func, given, result)
            if self._stack and is_mutable(func):
                self._note_writes(func, args)

    def _note_writes(self, func: Any, args: tuple[Any, ...]) -> None:
        """Count what an operator writes: through `.data`, no version does."""
        (schema,) = operator_schemas(func, "")
        written = [value for argument, value in zip(schema.arguments, args, strict=False) if writes(argument)]
        self._writes.update(self._numbers(written))

    def _convert(self, args: tuple[Any, ...], result: Any) -> bool:
        """Note what was converted; return whether it came from outside of all runs."""
        source, number = self._storages.number(args[0]), self._storages.number(result)
        runs = [block.run for block in self._stack if block.run is not None]
        if source is None or number is None or any(source in run.made or source in run.given for run in runs):
            return False
        self._converted[number] = (source, known_version(args[0]), *map(str, args[1:]))
        return True

    def _checkpoint(self, original: Callable[..., Any], function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return original(_Block(self, function), *args, **kwargs)

    def _numbered(self, args: Iterable[object]) -> Iterator[tuple[int, int]]:
        for place, tensor in enumerate(plain_tensors(list(args))):
            number = self._storages.number(tensor)
            if number is not None:
                yield number, place

    def _numbers(self, value: object) -> set[int]:
        """Return the numbers of the storages of all tensors in a value."""
        return {number for tensor in plain_tensors(value) if (number := self._storages.number(tensor)) is not None}

    def _statistics(self) -> Iterator[int]:
        for norm in filter(None, (reference() for reference in self._norms)):
            for name in PUT_BACK:
                buffer = own_buffers(norm).get(name)
                number = self._storages.number(buffer) if isinstance_safely(buffer, (torch.Tensor,)) else None
                if number is not None:
                    yield number

    def _compare(self, block: _Block, func: Any, args: tuple[Any, ...], result: Any) -> None:
        run = block.run
        if run is None:
            return
        taken = self._numbers(args)
        is_norm = not taken.isdisjoint(self._put_back)  # which may be given another momentum, and makes the same
        operator = _Operator(func, () if is_norm else tuple(self._key(run, value) for value in args))
        place = block.place_of(operator)
        if place is None:
            self._note_difference(func, sys._getframe(2))
            return
        run.outside |= taken - self._put_back - run.made.keys() - run.given.keys()
        if block.is_first:
            run.operators.append(operator)
        made = self._numbers(result)
        run.made.update(dict.fromkeys(made - taken - run.outside - run.given.keys(), place))
        if is_norm and taken <= self._put_back:  # as an instance norm, which repeats them
            self._put_back |= made

    def _key(self, run: _Run, value: Any) -> object:
        if isinstance_safely(value, (torch.Tensor,)):
            return self._tensor_key(run, value)
        if isinstance_safely(value, (list, tuple)):
            return tuple(self._key(run, one) for one in value)
        if is_one_of(value, _COMPARED):
            return value if value == value else "nan"  # noqa: PLR0124  # which is no other number
        return type(value).__name__

    def _tensor_key(self, run: _Run, tensor: torch.Tensor) -> object:
        number = self._storages.number(tensor)
        if number is None:
            return None
        if number in run.given:
            return "given", run.given[number]
        if number in run.made:
            return "made", run.made[number]
        if number in self._converted:
            return self._converted[number]
        content = _content(tensor)
        return (
            ("data", content)
            if content is not None
            else ("outside", number, known_version(tensor), self._writes[number])
        )

    def _note_difference(self, func: Any, frame: FrameType | None) -> None:
        user = own_frame(frame)
        where = "" if user is None else f" ({line_name(user.f_code.co_filename, line_at(user))})"
        self.difference = f"When it runs again, {func} is not given what it was given before{where}."


def _modules_of(function: Callable[..., Any]) -> list[nn.Module]:
    """List what a block runs, with all parts: it is a module's forward, or a function of the plan around modules."""
    waiting: list[Any] = [function]
    seen, found = set[int](), dict[int, nn.Module]()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance_safely(one, (nn.Module,)):
            found.update((id(part), part) for _, part in module_paths(one))
        elif type(one) is partial:
            waiting += (one.func, *one.args)
        elif type(one) is MethodType:
            waiting.append(one.__self__)
        elif type(one) is FunctionType and one.__code__.co_filename == PLAN_FILE:
            waiting += (cell.cell_contents for cell in one.__closure__ or ())
    return list(found.values())


def _content(tensor: torch.Tensor) -> bytes | None:
    """Return the bytes of a tensor that was made of the program's own data, as `torch.tensor(0.5)` is."""
    if type(tensor) is not torch.Tensor or tensor.device.type != "cpu" or not ops.is_contiguous(tensor):
        return None
    return ctypes.string_at(ops.data_ptr(tensor), tensor.nbytes) if tensor.nbytes <= _MOST_BYTES else None
