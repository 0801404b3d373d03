"""Parameters that are frozen, and that something about the program says were meant to learn.

NOTE [Frozen by accident]
A program may freeze what it likes, and pass all of a model to an optimizer. So a frozen parameter counts only if
nothing froze it (it is a copy of one that was frozen, an optimizer has the copy, and nothing that was copied with it
learns), if its optimizer goes on to step with nothing left that requires grad, or if the name that spares some
parameters on the freezing line is that of none.
An optimizer whose parameters were frozen before its first step may wait for a line that unfreezes them.
"""

import linecache
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import nn

from gradinspect.checks.evidence.training.gradient_use import held_by
from gradinspect.checks.evidence.training.optimizers import SeenOptimizer
from gradinspect.checks.evidence.training.registrations import Registrations
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.training import FrozenKind
from gradinspect.checks.facts.value_flow import OUTSIDE, short_name
from gradinspect.recording.frames import is_own_file
from gradinspect.recording.names.names import named_modules
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.source_structure import own_sources, spared_names
from gradinspect.torch_api.modules import own_parameters

_UNFREEZES = re.compile(r"requires_grad\w*(\(\)|.*\bTrue\b)")
LEAST_STEPS = 2  # with nothing that requires grad


class Frozen(NamedTuple):
    """Frozen parameters, and why that seems to be no choice."""

    kind: FrozenKind
    names: tuple[str, ...]
    frozen: int | None  # the frame that froze them, or what they are copies of
    optimizer: SeenOptimizer | None = None
    copied: int | None = None  # the frame
    asked: str = ""  # the name that no parameter has


def frozen_by_accident(
    optimizers: Sequence[SeenOptimizer], recorder: Recorder, registrations: Registrations, flow: Dataflow
) -> Iterator[Frozen]:
    """Yield what is frozen and was meant to learn. NOTE [Frozen by accident].

    Args:
        optimizers: All of them.
        recorder: Knows the modules that were called, and has the frames.
        registrations: When parameters became part of their modules.
        flow: Knows which calls froze parameters, and made copies.
    """
    parameters = _named(recorder.called_modules())
    for one in optimizers:
        yield from _copies(one, parameters, registrations, flow)
        yield from _since_a_phase(one, parameters, flow)
    yield from _asked_in_vain(parameters, recorder, flow)


def _named(roots: Sequence[nn.Module]) -> dict[int, tuple[str, torch.Tensor]]:
    """Return the parameters of models by their ids, with their names; those of the program's own classes come first."""
    found: list[tuple[bool, int, str, torch.Tensor]] = []
    for root in roots:
        for path, module in named_modules(root):
            is_of_torch = type(module).__module__.startswith("torch.")
            for name, parameter in own_parameters(module).items():
                if isinstance(parameter, torch.Tensor):
                    found.append((is_of_torch, id(parameter), f"{path}.{name}".lstrip("."), parameter))
    found.sort(key=lambda one: one[0])
    return {key: (name, parameter) for _, key, name, parameter in found}


def _copies(
    one: SeenOptimizer, parameters: Mapping[int, tuple[str, torch.Tensor]], registrations: Registrations, flow: Dataflow
) -> Iterator[Frozen]:
    """Yield what an optimizer holds and nothing has frozen."""
    optimizer = one.optimizer()
    if optimizer is None or one.num_steps < LEAST_STEPS:
        return
    by_line: dict[int | None, list[str]] = {}
    learning: set[int | None] = set()  # lines that copied what learns, too: a part of the model is frozen on purpose
    for tensor in held_by(optimizer):
        is_copied = id(tensor) not in flow.frozen and registrations.first_of(tensor) is None
        call = flow.read(tensor).call if is_copied and id(tensor) in parameters else OUTSIDE
        if call == OUTSIDE or short_name(flow.calls[call].name) != "clone":
            continue
        if tensor.requires_grad:
            learning.add(flow.calls[call].frame)
        else:
            by_line.setdefault(flow.calls[call].frame, []).append(parameters[id(tensor)][0])
    lines = set(flow.frozen.values())
    frozen = lines.pop() if len(lines) == 1 else None
    for copied, names in by_line.items():
        if copied not in learning:
            yield Frozen("copy", tuple(names), frozen, one, copied)


def _since_a_phase(
    one: SeenOptimizer, parameters: Mapping[int, tuple[str, torch.Tensor]], flow: Dataflow
) -> Iterator[Frozen]:
    """Yield what an optimizer holds and does not train any more, or never has."""
    optimizer = one.optimizer()
    if optimizer is None or one.num_idle < LEAST_STEPS:
        return
    held = held_by(optimizer)
    has_learned = one.num_idle < one.num_steps
    lines = {flow.frozen.get(id(tensor)) for tensor in held}
    if len(lines) != 1 or None in lines or any(tensor.requires_grad for tensor in held):
        return
    if has_learned or not _may_unfreeze():
        names = tuple(parameters[id(tensor)][0] for tensor in held if id(tensor) in parameters)
        yield Frozen("phase" if has_learned else "never", names, lines.pop(), one)


def _may_unfreeze() -> bool:
    """Return whether a line of the program turns requires_grad on."""
    files = own_sources("requires_grad")
    return any(_UNFREEZES.search(line) for file in files for line in linecache.getlines(file))


def _asked_in_vain(
    parameters: Mapping[int, tuple[str, torch.Tensor]], recorder: Recorder, flow: Dataflow
) -> Iterator[Frozen]:
    """Yield what a line froze that spares parameters by a name, which none has."""
    by_line: dict[int, list[str]] = {}
    for key, (name, tensor) in parameters.items():
        number = flow.frozen.get(key)
        if number is not None and not tensor.requires_grad:
            by_line.setdefault(number, []).append(name)
    known = [name for name, _ in parameters.values()]
    for number, names in by_line.items():
        code, line = next(recorder.frames.chain(number))
        for test, texts in spared_names(code.co_filename, line) if is_own_file(code.co_filename) else ():
            if not any(_has(test, text, name) for text in texts for name in known):
                yield Frozen("filter", tuple(names), number, asked=texts[0])


def _has(test: str, text: str, name: str) -> bool:
    """Return whether a name passes a test; it may be relative to a part of the model."""
    if test == "in":
        return text in name
    if test == "endswith":
        return name.endswith(text)
    return any(name[place:].startswith(text) for place in (0, *(i + 1 for i, one in enumerate(name) if one == ".")))
