"""Parameters that are frozen, and that something about the program says were meant to learn.

NOTE [Frozen by accident]
A program may freeze what it likes, and pass all of a model to an optimizer. So a frozen parameter counts only if
nothing froze it (it is a copy of one that was frozen, an optimizer has the copy, and nothing that was copied with it
learns), if its optimizer goes on to step with nothing left that requires grad, or if the name that spares some
parameters on the freezing line is that of none. So does a matrix of zeros that a line froze: it changes nothing, as the
second factor of an adapter that was made before the model around it was frozen.
An optimizer whose parameters were frozen before its first step may wait for a line that unfreezes them.
What nobody freezes may be frozen, too: a tensor that is no parameter does not require grad unless it is asked to, and
from_pretrained() of an embedding freezes what it makes by default. The first counts if an optimizer that trains others
has it, and neither a step nor the program has written to it since; the second if it has a group of the optimizer for
itself, which no program makes for what is to stay frozen.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import nn

from gradinspect.checks.evidence.training.gradient_use import held_by
from gradinspect.checks.evidence.training.optimizers import SeenOptimizer
from gradinspect.checks.evidence.training.registrations import Registrations
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.evidence.values.result_states import is_small_and_readable
from gradinspect.checks.facts.training import FrozenKind
from gradinspect.checks.facts.value_flow import OUTSIDE, short_name
from gradinspect.recording.frames import is_own_file
from gradinspect.recording.names.names import named_modules
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.source_structure import enclosing, own_sources, spared_names
from gradinspect.recording.source_text import lines_of
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.modules import own_buffers, own_parameters
from gradinspect.torch_api.patching.classes import module_of
from gradinspect.torch_api.patching.originals import ops
from gradinspect.torch_api.tensors import version_of

_UNFREEZES = re.compile(r"requires_grad\w*(\(\)|.*\bTrue\b)")
LEAST_STEPS = 2  # with nothing that requires grad
LEAST_GROUPS = 2
MOST_ELEMENTS = 10**6  # of a matrix that is read


class Frozen(NamedTuple):
    """Frozen parameters, and why that seems to be no choice."""

    kind: FrozenKind
    names: tuple[str, ...]
    frozen: int | None  # the frame that froze them, or what they are copies of
    optimizer: SeenOptimizer | None = None
    copied: int | None = None  # the frame
    made: int | None = None  # the frame of what never required grad
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
        yield from _plain(one, recorder, flow)
        yield from _by_default(one, parameters, recorder, registrations)
        yield from _since_a_phase(one, parameters, flow)
    yield from _asked_without_effect(parameters, recorder, flow)
    trained = next((one for one in optimizers if one.num_steps - one.num_idle >= LEAST_STEPS), None)
    if trained is not None:
        yield from _without_effect(trained, parameters, flow)


def _named(roots: Sequence[nn.Module]) -> dict[int, tuple[str, torch.Tensor]]:
    """Return the parameters of models by their ids, with their names; those of the program's own classes come first."""
    found: list[tuple[bool, int, str, torch.Tensor]] = []
    for root in roots:
        for path, module in named_modules(root):
            is_of_torch = module_of(type(module)).startswith("torch.")
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


def _plain(one: SeenOptimizer, recorder: Recorder, flow: Dataflow) -> Iterator[Frozen]:
    """Yield the tensors that an optimizer holds with others that it trains, and that never required grad."""
    optimizer = one.optimizer()
    if optimizer is None or one.num_steps < LEAST_STEPS or one.num_idle == one.num_steps or not one.plain:
        return
    buffers = {id(own) for root in recorder.called_modules() for own in _buffers(root)}
    for tensor in held_by(optimizer):
        made = flow.read(tensor).call if _is_untouched(tensor, one) and id(tensor) not in buffers else OUTSIDE
        frame = None if made == OUTSIDE or flow.calls[made].name in ("detach", "data") else flow.calls[made].frame
        if frame is None or id(tensor) in flow.frozen:
            continue
        name = _assigned_at(recorder, frame, short_name(flow.calls[made].name))
        if name is not None and not _may_unfreeze(name):
            yield Frozen("plain", (name,), None, one, made=frame)


def _buffers(root: nn.Module) -> Iterator[torch.Tensor]:
    for _, module in named_modules(root):
        yield from (one for one in own_buffers(module).values() if one is not None)


def _is_untouched(tensor: torch.Tensor, one: SeenOptimizer) -> bool:
    """Return whether a tensor that could learn is as it was when the optimizer was made."""
    could_learn = ops.is_floating_point(tensor) or ops.is_complex(tensor)
    is_same = one.plain.get(id(tensor)) == (version_of(tensor) or 0)
    return could_learn and is_same and not tensor.requires_grad and tensor.grad is None


def _assigned_at(recorder: Recorder, number: int, function: str) -> str | None:
    """Return the variable to which a line of the program assigns what a function returns: `self.scale`."""
    code, line = next(recorder.frames.chain(number))
    around = enclosing(code.co_filename, line) if is_own_file(code.co_filename) else ()
    made = next((one for one in around if isinstance(one, ast.Assign)), None)
    if made is None or len(made.targets) != 1 or not isinstance(made.value, ast.Call):
        return None
    target, called = made.targets[0], ast.unparse(made.value.func).rpartition(".")[2]
    return ast.unparse(target) if called == function and isinstance(target, ast.Name | ast.Attribute) else None


def _by_default(
    one: SeenOptimizer,
    parameters: Mapping[int, tuple[str, torch.Tensor]],
    recorder: Recorder,
    registrations: Registrations,
) -> Iterator[Frozen]:
    """Yield what has a group of an optimizer for itself, and what from_pretrained() froze without being asked to."""
    optimizer = one.optimizer()
    if optimizer is None or one.num_steps < LEAST_STEPS or len(optimizer.param_groups) < LEAST_GROUPS:
        return
    for group in optimizer.param_groups:
        held = group["params"]
        made = [registrations.first_of(tensor) for tensor in held if not tensor.requires_grad]
        lines = {None if one is None else one.frame for one in made}
        number = lines.pop() if len(made) == len(held) and len(lines) == 1 else None
        if number is not None and _freezes_by_default(recorder, number) and not _may_unfreeze():
            yield Frozen("default", tuple(parameters[id(own)][0] for own in held if id(own) in parameters), number, one)


def _freezes_by_default(recorder: Recorder, number: int) -> bool:
    """Return whether a line calls from_pretrained() of an embedding, and does not say whether to freeze."""
    code, line = next(recorder.frames.chain(number))
    calls = [one for one in enclosing(code.co_filename, line) if isinstance(one, ast.Call)]
    return is_own_file(code.co_filename) and any(
        ast.unparse(one.func).endswith("from_pretrained")
        and len(one.args) == 1
        and not any(word.arg in ("freeze", None) for word in one.keywords)
        for one in calls
    )


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


def _may_unfreeze(name: str = "") -> bool:
    """Return whether a line of the program turns requires_grad on; that of a variable, if it is given."""
    files, pattern = own_sources("requires_grad"), _UNFREEZES
    if name:
        pattern = re.compile(rf"\b{re.escape(name.rpartition('.')[2])}\.requires_grad")
    return any(pattern.search(line) for file in files for line in lines_of(file))


def _asked_without_effect(
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


def _without_effect(
    one: SeenOptimizer, parameters: Mapping[int, tuple[str, torch.Tensor]], flow: Dataflow
) -> Iterator[Frozen]:
    """Yield matrices of zeros that a line froze, while an optimizer trains others."""
    by_line: dict[int, list[str]] = {}
    for key, (name, tensor) in parameters.items():
        number = flow.frozen.get(key)
        if number is not None and not tensor.requires_grad and len(tensor.shape) > 1 and _is_zero(tensor):
            by_line.setdefault(number, []).append(name)
    if by_line and not _may_unfreeze():
        yield from (Frozen("zero", tuple(names), number, one) for number, names in by_line.items())


def _is_zero(tensor: torch.Tensor) -> bool:
    if not is_small_and_readable(tensor, MOST_ELEMENTS):
        return False
    with unobserved():
        return int(ops.item(ops.count_nonzero(tensor))) == 0


def _has(test: str, text: str, name: str) -> bool:
    """Return whether a name passes a test; it may be relative to a part of the model."""
    if test == "in":
        return text in name
    if test == "endswith":
        return name.endswith(text)
    return any(name[place:].startswith(text) for place in (0, *(i + 1 for i, one in enumerate(name) if one == ".")))
