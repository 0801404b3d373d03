"""Weights that are kept apart from those that are trained, and are in the same memory all the same.

NOTE [Kept apart]
Two tensors may share memory on purpose, so what counts is that the program uses them as two: it adds one to the other,
as a moving average does, which is then an average of the weights with themselves, and one of them was made before the
last step, or is a parameter that was given the other's memory (weight decay adds p.data to p.data of that moment);
or it keeps a state dict, or the tensors of one in another dict, under a condition, steps, and has a line elsewhere that
loads it into the same model, or is seen to do so: what is read from a file is another one, though it may have its name;
or it holds several state dicts that one line asked for between steps, as a list of snapshots does: all are the same;
or it loads the state dict of one variable into another one, and both are the same trained model;
or it gives a parameter the memory of a trained one by `.data =` after a step, and keeps it over the next:
weights are tied before.
"""

import ast
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple
from weakref import ReferenceType, ref

import torch
from torch import nn

from gradinspect.checks.evidence.training.gradient_use import GradientUse
from gradinspect.checks.facts.training import SharedWeights
from gradinspect.graph import Frame
from gradinspect.recording.frames import is_own_file, source_line
from gradinspect.recording.names.names import all_parameters
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.source_structure import (
    assignment_before,
    calls_at,
    calls_in,
    calls_of,
    contains,
    enclosing,
    own_sources,
)
from gradinspect.torch_api.patching.classes import is_one_of
from gradinspect.torch_api.patching.originals import ops
from gradinspect.torch_api.tensors import is_transforming
from gradinspect.torch_api.weak import HiddenRef

_ASKED = re.compile(r"[\w.]+\.state_dict\([^()]*\)")
_LOADED = re.compile(r"load_state_dict\(([\w.]+(?:\[[^][]*\])*)[,)]")
MAX_KEPT = 100  # state dicts
LEAST_SNAPSHOTS = 3  # the last one may be held beside the one before, until its variable is assigned anew
MAX_VALUES = 8  # of a state dict, that are looked at


@dataclass
class _Kept:
    """A state dict that the program has asked for."""

    state: ReferenceType[Any]
    values: dict[str, HiddenRef]  # tensors in it, also if they are in another dict by now
    line: int | None  # the frame
    num_steps: int  # of optimizers until then

    def alive(self) -> dict[str, torch.Tensor]:
        """Return the tensors that the program still holds."""
        return {name: value for name, known in self.values.items() if (value := known()) is not None}


class _Given(NamedTuple):
    """A parameter that was given the memory of a trained one, perhaps for an evaluation only."""

    tensor: HiddenRef
    trained: HiddenRef
    name: str
    line: int | None


class _Loaded(NamedTuple):
    """A model was given its own state dict."""

    fact: SharedWeights
    keys: frozenset[int]  # the ids of its parameters


@dataclass
class SharingWeights:
    """Tracks weights that share memory. The log calls it with what it sees."""

    recorder: Recorder
    gradients: GradientUse
    made_at: Callable[[torch.Tensor], int | None]  # the frame that made a tensor, or assigned its data
    folder: Path
    _found: list[SharedWeights] = field(default_factory=list)
    _kept: list[_Kept] = field(default_factory=list)
    _loaded: dict[int | None, _Loaded] = field(default_factory=dict)  # by the frame that loads
    _given: "_Given | None" = None  # since the last step
    _seen: set[int | None] = field(default_factory=set)  # frames that asked for state dicts
    _piled: set[int | None] = field(default_factory=set)  # those of which several state dicts are held

    def averaged(self, tensors: Sequence[torch.Tensor], frame: FrameType | None) -> None:
        """Look at a tensor that another one was added to. NOTE [Kept apart]."""
        is_found = any(one.kind == "average" for one in self._found)
        if is_found or len(tensors) < 2 or tensors[0] is tensors[1] or not _is_same_memory(*tensors[:2]):
            return
        of = [one for one in self.gradients.parameters() if (tensor := one.tensor()) is not None
              and _is_same_memory(tensor, tensors[0])]  # fmt: skip
        is_trained = any(one.tensor() is tensors[0] for one in of)
        made = self.made_at(tensors[0]) if of and not is_trained else None
        if made is not None and frame is not None and is_own_file(frame.f_code.co_filename):
            line = self.recorder.frames.number_of(frame)
            self._found.append(
                SharedWeights(
                    kind="average",
                    name=of[0].name,
                    shared=self._frame(made),
                    used=self._frame(line),
                )
            )

    def data_set(self, tensor: torch.Tensor, frame: FrameType | None) -> None:
        """Look at a parameter that was given other memory, perhaps that of a trained one."""
        is_found = any(one.kind == "synchronized" for one in self._found)
        if is_found or self._given is not None or not self.gradients.num_steps:
            return
        if frame is None or not is_own_file(frame.f_code.co_filename):
            return
        trained = [(one, value) for one in self.gradients.parameters() if (value := one.tensor()) is not None]
        if any(value is tensor for _, value in trained):
            return
        same = next((one for one, value in trained if _is_same_memory(value, tensor)), None)
        if same is not None and (value := same.tensor()) is not None:
            number = self.recorder.frames.number_of(frame)
            self._given = _Given(HiddenRef(tensor), HiddenRef(value), same.name, number)

    def kept(self, state: Any, frame: FrameType) -> None:
        """Note a state dict."""
        if not isinstance(state, Mapping) or not is_own_file(frame.f_code.co_filename):
            return
        self._kept = [one for one in self._kept if one.alive()]
        if len(self._kept) >= MAX_KEPT:
            self.recorder.errors.pass_over("state_dict that is kept", f"after the first {MAX_KEPT}")
        else:
            tensors = ((name, value) for name, value in state.items() if _is_read(value))
            values = {name: HiddenRef(value) for name, value in islice(tensors, MAX_VALUES)}
            line = self.recorder.frames.number_of(frame)
            self._kept.append(_Kept(ref(state), values, line, self.gradients.num_steps))

    def loaded(self, module: nn.Module, state: Any, frame: FrameType) -> None:
        """Look at what a model is given, once for each line: it may be its own, under another name."""
        number = self.recorder.frames.number_of(frame)
        if number in self._loaded or not isinstance(state, Mapping) or not is_own_file(frame.f_code.co_filename):
            return
        parameters = list(all_parameters(module))
        own, given = (
            set(map(_memory, parameters)),
            {_memory(one) for one in state.values() if isinstance(one, torch.Tensor)},
        )
        kept = next((one for one in self._kept if one.state() is state and one.line is not None), None)
        if own and None not in own and own <= given and kept is not None:
            file, loads, asks = frame.f_code.co_filename, self._frame(number), self._frame(kept.line)
            fact = _under_two_names(file, loads, asks, self.folder)
            if fact is None and kept.num_steps < self.gradients.num_steps and asks is not None:
                fact = _loaded_later(loads, asks)
            is_known = fact is not None and any(one.shared == fact.shared for one in self._found)
            if fact is not None and not is_known:
                self._loaded[number] = _Loaded(fact, frozenset(map(id, parameters)))

    def stepped(self) -> None:
        """Look at the state dicts that are there after a step, once for each line, and at what `.data =` has shared."""
        self._look_for_snapshots()
        given, self._given = self._given, None
        pair = () if given is None else (given.tensor(), given.trained())
        if given is not None and None not in pair and _is_same_memory(*pair):
            self._found.append(SharedWeights(kind="synchronized", name=given.name, shared=self._frame(given.line)))
        for one in self._kept:
            values = {} if one.line in self._seen else one.alive()
            if not values or one.num_steps >= self.gradients.num_steps:
                continue
            self._seen.add(one.line)
            tensors = (tensor for one in self.gradients.parameters() if (tensor := one.tensor()) is not None)
            fact = self._fact(one, values, set(map(_memory, tensors)) - {None})
            self._found += () if fact is None else (fact,)

    def _look_for_snapshots(self) -> None:
        """Look for several state dicts of one line that are held, and are the same."""
        held: dict[tuple[int | None, Any], set[int]] = {}
        for one in self._kept:
            if one.state() is not None and one.line not in self._piled:
                memory = tuple(map(_memory, one.alive().values()))
                held.setdefault((one.line, memory), set()).add(one.num_steps)
        for (number, memory), moments in held.items():
            line = self._frame(number)
            if memory and None not in memory and len(moments) >= LEAST_SNAPSHOTS and line is not None:
                self._piled.add(number)
                self._found.append(_snapshots(line, len(moments)))

    def facts(self) -> Sequence[SharedWeights]:
        """List what shares memory."""
        trained = {one.fact.name: one.fact for one in self._loaded.values() if self.gradients.with_ids(one.keys)}
        return [*self._found, *trained.values()]

    def _fact(self, one: _Kept, values: Mapping[str, torch.Tensor], trained: Collection[Any]) -> SharedWeights | None:
        names = [name for name, value in values.items() if _memory(value) in trained]
        line = self._frame(one.line)
        if not names or line is None:
            return None
        found = (_loaded_elsewhere(file, line) for file in own_sources("load_state_dict"))
        return next((fact for fact in found if fact is not None), None)

    def _frame(self, number: int | None) -> Frame | None:
        return self.recorder.frames.record(number, self.folder)


def _loaded_elsewhere(file: str, line: Frame) -> SharedWeights | None:
    """Describe a state dict that is kept under a condition, if another place of a file loads it into the model."""
    around = enclosing(file, line.line)
    assignment = next((one for one in around if isinstance(one, ast.Assign)), None)
    condition = next((one for one in around if isinstance(one, ast.If)), None)
    taken = None if assignment is None else _state_dict_in(assignment.value)
    if assignment is None or condition is None or taken is None:
        return None
    target, asked, module = assignment.targets[0], ast.unparse(taken), _last_name(taken.func.value)  # type: ignore[attr-defined]
    key = _key_of(assignment.value, taken)
    name = ast.unparse(target) if key is None else f"{ast.unparse(target)}[{key!r}]"
    for call in calls_of(file, "load_state_dict"):
        if not call.args or contains(condition, call.lineno) or _is_from_file(file, call.args[0]):
            continue
        loaded = call.args[0]
        is_same = ast.unparse(loaded) == name if key else _last_name(loaded) == _last_name(target) is not None
        if is_same and _last_name(call.func.value) == module:  # type: ignore[attr-defined]
            return SharedWeights(kind="loaded" if key else "state", name=name, taken=asked, shared=line)
    return None


def _key_of(value: ast.expr, taken: ast.Call) -> str | None:
    """Return the key under which `{"epoch": 3, "model": model.state_dict()}` has a state dict."""
    pairs = zip(value.keys, value.values, strict=True) if isinstance(value, ast.Dict) else ()
    keys = [key.value for key, one in pairs if one is taken and isinstance(key, ast.Constant)]
    return keys[0] if keys and isinstance(keys[0], str) else None


def _is_from_file(file: str, loaded: ast.expr) -> bool:
    """Return whether what is loaded into a model was read from a file just before, perhaps under a kept name."""
    while isinstance(loaded, ast.Subscript):
        loaded = loaded.value
    name = ast.unparse(loaded) if isinstance(loaded, ast.Name | ast.Attribute) else None
    assigned = None if name is None else assignment_before(file, name, loaded.lineno)
    return assigned is not None and any(one.rpartition(".")[2] == "load" for one in calls_in(assigned.value))


def _snapshots(line: Frame, number: int) -> SharedWeights:
    return SharedWeights(
        kind="snapshots", name=_asked(line.code), taken=_asked(line.code), num_kept=number, shared=line
    )


def _loaded_later(loads: Frame | None, asks: Frame) -> SharedWeights:
    """Describe a state dict that was kept over steps and is loaded into its own model."""
    loaded = _LOADED.search("" if loads is None else loads.code)
    name = "what is loaded" if loaded is None else loaded[1]
    return SharedWeights(kind="loaded", name=name, taken=_asked(asks.code), shared=asks, used=loads)


def _asked(code: str) -> str:
    """Write how a line asks for a state dict; it may be a part of a statement."""
    found = _ASKED.search(code)
    return "state_dict()" if found is None else found[0]


def _state_dict_in(value: ast.expr) -> ast.Call | None:
    """Return the call of `model.state_dict()` in what is assigned: `dict(model.state_dict())` has the same tensors."""
    calls = (node for node in ast.walk(value) if isinstance(node, ast.Call))
    return next((one for one in calls if isinstance(one.func, ast.Attribute) and one.func.attr == "state_dict"), None)


def _is_read(value: object) -> bool:
    return isinstance(value, torch.Tensor) and _memory(value) is not None


def _under_two_names(file: str, loads: Frame | None, asks: Frame | None, folder: Path) -> SharedWeights | None:
    """Return the variables of one model, if a function loads the state dict of one into the other."""
    if loads is None or asks is None or loads.function != asks.function:
        return None
    given = next((call.func.value for call in calls_at(file, "load_state_dict", loads.line)), None)
    asked = next((call.func.value for call in calls_at(file, "state_dict", asks.line)), None)
    names = [None if one is None else _last_name(one) for one in (given, asked)]
    if given is None or asked is None or None in names or names[0] == names[1]:
        return None
    copy, model = ast.unparse(given), ast.unparse(asked)
    made = {name: assignment_before(file, name, loads.line) for name in (model, copy)}
    lines = {name: 0 if one is None else one.lineno for name, one in made.items()}
    if lines[copy] < lines[model]:
        copy, model = model, copy
    shared = source_line(file, lines[copy], folder) if lines[copy] else None
    return SharedWeights(kind="model", name=copy, taken=model, used=loads, shared=shared)


def _last_name(node: ast.expr) -> str | None:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None


def _memory(tensor: torch.Tensor) -> tuple[int, torch.Size] | None:
    is_plain = is_one_of(tensor, (torch.Tensor, nn.Parameter)) and tensor.layout is torch.strided
    if not is_plain or is_transforming():  # whose tensors have no address
        return None
    address = ops.data_ptr(tensor)
    return (address, tensor.shape) if address else None


def _is_same_memory(one: torch.Tensor, other: torch.Tensor) -> bool:
    return _memory(one) is not None and _memory(one) == _memory(other)
