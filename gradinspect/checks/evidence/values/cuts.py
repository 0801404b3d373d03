"""Tensors that lack an expected gradient: stepped by an optimizer, passed to autograd.grad, or with `.grad` read.

That an optimizer holds a tensor proves nothing: a generator gets no gradient while the discriminator learns. But a step
on a tensor without a gradient does, unless another observed backward reaches that tensor.
"""

import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple
from weakref import ReferenceType

import torch
from msgspec.structs import replace
from torch import nn
from torch.optim.optimizer import Optimizer

from gradinspect.checks.evidence.objectives.advantages import chosen_targets
from gradinspect.checks.evidence.objectives.collapses import CollapseLog
from gradinspect.checks.evidence.objectives.judged import LossContext, objective_facts
from gradinspect.checks.evidence.optimizer_names import name_of_optimizer
from gradinspect.checks.evidence.optimizer_steps import heard_steps
from gradinspect.checks.evidence.targets.signs import SignLog
from gradinspect.checks.evidence.training.gradient_use import held_by
from gradinspect.checks.evidence.values.dataflow import MAX_CALLS, Dataflow
from gradinspect.checks.evidence.values.idle_terms import IdleTerms
from gradinspect.checks.evidence.values.late_functions import LateFunctions, late_functions
from gradinspect.checks.evidence.values.loss_terms import (
    PROBABILITIES,
    constant_terms,
    divergence_inputs,
    lost_terms,
    sampled_inputs,
)
from gradinspect.checks.evidence.values.missing_gradient import UNNAMED, explained, names_of, outcomes_of
from gradinspect.checks.evidence.values.numbers import NumberTerm, exit_of_number, number_exits, number_terms
from gradinspect.checks.evidence.values.parameter_owner import Owner, owner_of
from gradinspect.checks.evidence.values.perhaps_meant import bootstrap_note, bootstraps
from gradinspect.checks.evidence.values.refused import loss_without_graph
from gradinspect.checks.facts.value_flow import NO_LEAF, OUTSIDE, FlowOutcome, Read, ancestors, descendants
from gradinspect.checks.facts.values import (
    ConstantTerm,
    DivergenceInput,
    GradientTerm,
    LateVariable,
    MissingGradient,
    NonLeafGradient,
    NoticedAt,
    SampledInput,
    by_cause,
)
from gradinspect.checks.findings import Finding, listed
from gradinspect.checks.registry import findings_on
from gradinspect.graph import Frame, Graph, frame_of
from gradinspect.recording.capture import WalkedGraph
from gradinspect.recording.frames import is_own_file, lines_from
from gradinspect.recording.names.instances import live_optimizers
from gradinspect.recording.names.variables import variables_from
from gradinspect.recording.outputs import OutputTensor
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.walk import Walk
from gradinspect.runner.engine import EngineCall
from gradinspect.torch_api.engine import is_inside_backward
from gradinspect.torch_api.patching.classes import module_of
from gradinspect.torch_api.tensors import can_watch_storages, grad_fn_of, is_leaf, plain_tensors_only
from gradinspect.torch_api.weak import HiddenRef
from gradinspect.units import format_count

_ASSIGNS_NONE = re.compile(r"(?<![=!<>])= *None\b")


class _Root(NamedTuple):
    read: Read
    backward: Frame | None
    fills: bool  # `.grad`, as autograd.grad() does not


class _Asked(NamedTuple):
    """A tensor that the program asked for its gradient."""

    tensor: HiddenRef
    num_calls: int  # of backward so far


class _Wanted(NamedTuple):
    """A tensor without a gradient where one is expected."""

    tensor: ReferenceType[torch.Tensor]
    missing: MissingGradient
    owner: Owner | None
    read: Read  # when it was last looked at
    by: int  # the id of the optimizer that held it; 0: the program read its gradient
    num_calls: int  # of backward until then
    late: LateFunctions | None = None  # which may use another tensor instead


class GradientCuts:
    """Finds tensors without a gradient. Use it as a context manager, around the program."""

    def __init__(self, recorder: Recorder, flow: Dataflow, folder: Path) -> None:
        """Set up.

        Args:
            recorder: Has the frames and modules.
            flow: The flow of values.
            folder: Files below it are named relative to it.
        """
        self._recorder = recorder
        self._folder = folder
        self._flow = flow
        self._flow.on_missing_grad = self._on_missing_grad
        self.created: Callable[[Optimizer], int | None] = lambda _optimizer: None  # the frame that made it
        self._roots: list[_Root] = []
        self._num_calls = 0
        self.reached: set[int] = set()  # ids of the leaves that an observed call reaches
        self._filled: set[int] = set()  # those whose `.grad` it fills, or that had one in a step
        self._wanted: dict[int, _Wanted] = {}
        self._last_calls: dict[int, int] = {}  # of backward, until an optimizer last stepped, by its id
        self._nonleaf: list[NonLeafGradient] = []
        self._asked: dict[int, _Asked] = {}  # by the id of a non-leaf tensor: when a line that checks for None asked
        # By the lines of a term, with the ids of the leaves that it cuts off, and that this call does not train.
        self._constant: dict[tuple[Frame | None, Frame | None], tuple[ConstantTerm, frozenset[int]]] = {}
        self._numeric: dict[int | None, tuple[NumberTerm, Frame | None]] = {}  # by the frames of what read the number
        self._perhaps: dict[str, None] = {}  # what may be meant
        self._idle = IdleTerms(flow, self._frame)
        self._signs = SignLog(flow)
        self._collapses = CollapseLog(flow)
        self._is_opaque = False  # there is a compiled part, which cannot be inspected
        self._has_missed = False  # a call that may have reached any leaf
        self._is_resting = False  # steps repeat others
        self._attached = ExitStack()

    def __enter__(self) -> "GradientCuts":
        """Register hooks of all optimizers."""
        self._attached.enter_context(heard_steps(self._recorder, self._before_step, self._after_step))
        return self

    def __exit__(self, *_error: object) -> None:
        """Remove the hooks."""
        self._attached.close()
        self._flow.close()

    def begin(self, walked: WalkedGraph, call: EngineCall) -> Iterator[Finding]:
        """Look at a call that is about to start: what it reaches, and which of its inputs it does not."""
        graph, walk, _ = walked
        backward = frame_of(graph, graph.captured_at)
        roots = [self._flow.read(output) for output in call.outputs if isinstance(output, torch.Tensor)]
        self._num_calls += call.kind == "backward"
        self._roots += [_Root(root, backward, call.kind == "backward") for root in roots]
        self._is_opaque |= any(node.kind == "compiled" for node in graph.nodes)
        reached = set(map(id, walk.leaves().values()))
        missed = [] if call.allows_unused else [value for value in call.inputs if not _is_in(value, walk, reached)]
        arrived = reached & set(map(id, call.inputs)) if call.inputs else reached
        self.reached |= arrived
        self._filled |= arrived if call.kind == "backward" else set()
        self._flow.has_grad_with_graph = call.creates_graph
        if call.kind == "backward":
            self._signs.begin(call.outputs, backward)
            self._collapses.begin(call.outputs, backward)
        yield from self._missed_inputs(missed, call, backward)
        for root in roots:
            yield from self._wrong_terms(root, backward)
            self._note_constant_terms(graph, root, backward, arrived)
            if call.kind == "backward" and not self._flow.is_full:
                self._idle.begin(root, backward)
            self._note_what_may_be_meant(root, call)

    def rest(self) -> None:
        """Let calls and steps that repeat others pass by."""
        self._is_resting = True
        self._idle.unobserved()

    def wake(self) -> None:
        """Look at them again."""
        self._is_resting = False

    @property
    def saw_all(self) -> bool:
        """Whether no limit was reached."""
        return not (self._flow.is_full or self._idle.num_passed_over)

    def unobserved(self) -> None:
        """Note a call that is not looked at."""
        self._has_missed = True

    def refused(self, call: EngineCall) -> Iterator[Finding]:
        """Explain why a call has no graph."""
        fact = loss_without_graph(self._flow, call, self._recorder, self._frame)
        return self._judged(fact) if fact is not None else iter(())

    def findings(self, others: Collection[int] = ()) -> Iterator[Finding]:
        """Report the tensors found without a gradient that no observed call reaches.

        Args:
            others: The ids of tensors of which another finding says why.
        """
        for fact in (*self._nonleaf, *self._signs.facts(self._frame), *self._collapses.facts(self._frame)):
            yield from self._judged(fact)
        known = self._filled.union(others)
        wanted = {key: one for key, one in self._wanted.items() if key not in known and self._counts(one)}
        if not self._roots or self._has_missed or self._flow.is_full or not can_watch_storages():
            return
        yield from self._late(wanted.values())
        records = list(self._records({key: one for key, one in wanted.items() if one.late is None}))
        yield from self._by_cause(records)
        detached = {record.cut for record in records}
        for idle in self._idle.found():
            yield from self._judged(idle)
        for term in (*self._constant_terms(), *self._numeric_terms()):
            if term.cut not in detached:
                yield from self._judged(term)

    def _counts(self, one: _Wanted) -> bool:
        """Return whether a tensor is there, or was in the last step: what functions hold is gone in the end."""
        return one.num_calls == self._last_calls[one.by] or one.tensor() is not None

    def _late(self, wanted: Iterable[_Wanted]) -> Iterator[Finding]:
        """Report functions that share the variable of the loop which made them."""
        by_code: dict[CodeType, list[_Wanted]] = {}
        for one in wanted:
            if one.late is not None:
                by_code.setdefault(one.late.code, []).append(one)
        for code, some in by_code.items():
            first, late = some[0].missing, some[0].late
            made = self._frame(self._recorder.frames.number_at(code, code.co_firstlineno))
            names = tuple(dict.fromkeys(one.missing.name for one in some))
            if late is not None:
                fact = LateVariable(
                    variable=late.variable, count=late.num_functions, names=names, made=made, backward=first.backward,
                    noticed=first.noticed.frame,
                )  # fmt: skip
                yield from self._judged(fact)

    def _records(self, wanted: Mapping[int, _Wanted]) -> Iterator[MissingGradient]:
        """Yield why no gradient reaches tensors, given by their ids, as far as that is known."""
        with plain_tensors_only():
            alive = [one.tensor() for one in wanted.values()]
            starts = [
                one.read if tensor is None else self._flow.read(tensor)
                for one, tensor in zip(wanted.values(), alive, strict=True)
            ]
        filling = [root.read for root in self._roots if root.fills] or [root.read for root in self._roots]
        outcomes = outcomes_of(self._flow, starts, filling)
        reached: dict[int, set[int]] = {}
        for (key, one), outcome in zip(wanted.items(), outcomes, strict=True):
            if outcome.kind != "cut" and key in self.reached:  # by a call that fills no `.grad`
                yield replace(one.missing, kind="returned")
                continue
            if outcome.kind != "cut" and (self._is_opaque or self._roots[-1].read.call == OUTSIDE):
                continue
            if outcome.kind == "unread" and one.owner is not None and one.owner.is_unused_choice:
                continue
            record = explained(self._flow, one.missing, outcome, self._frame)
            is_uncalled = one.owner is not None and not one.owner.is_called
            module = record.name.rpartition(".")[0] or None if is_uncalled else None
            other = self._other_backward(outcome, record.backward, reached)
            yield replace(record, module=module, num_calls=self._num_calls or 1, other=other)

    def waits(self) -> str | None:
        """Name a tensor without a gradient: a later call may reach it."""
        names = [
            one.missing.name
            for key, one in self._wanted.items()
            if key not in self._filled and one.tensor() is not None
        ]
        return f"no gradient had reached {listed(names)}" if names else None

    def notes(self) -> Iterator[str]:
        """Say what could not be checked."""
        if self._flow.is_full:
            yield f"Missing gradients were not checked: there were more than {MAX_CALLS:,} calls of torch functions."
        if self._idle.num_passed_over:
            skipped = format_count(self._idle.num_passed_over, "backward call")
            yield f"Not checked: terms of the loss of {skipped} that the optimizer cannot lower, as the loss is long."
        yield from self._perhaps

    def _wrong_terms(self, root: Read, backward: Frame | None) -> Iterator[Finding]:
        calls = self._flow.calls
        for made, used, _ in lost_terms(calls, root, self._is_trained):
            yield from self._judged(
                GradientTerm(
                    gradient=self._line(made),
                    used=self._line(used),
                    backward=backward,
                    is_attribute=calls[made].is_attribute,
                )
            )
        if self._flow.has_samples:
            for made, used, _ in sampled_inputs(calls, root, self._recorder.errors.pass_over):
                yield from self._judged(
                    SampledInput(
                        is_normal=calls[made].cause != "sample",
                        sampled=self._line(made),
                        used=self._line(used),
                        backward=backward,
                    )
                )
        for made, used, _ in divergence_inputs(calls, root):
            maker = calls[made].name
            yield from self._judged(
                DivergenceInput(
                    maker=maker,
                    is_probability=maker in PROBABILITIES,
                    made=self._line(made),
                    used=self._line(used),
                    backward=backward,
                )
            )

        known = LossContext(
            self._line, self._caller, self._is_held, self._recorder.errors.pass_over, self._flow.has_integers
        )
        for fact in objective_facts(calls, root, known, backward):
            yield from self._judged(fact)

    def _note_constant_terms(self, graph: Graph, root: Read, backward: Frame | None, arrived: Collection[int]) -> None:
        """Store the terms of a scalar loss that have no graph, until it is known whether parameters miss a gradient."""
        if self._flow.is_full or graph.roots[0].info is None or graph.roots[0].info.shape:
            return
        for made, used, reduced in constant_terms(self._flow.calls, root):
            call, cut, line = self._flow.calls[made], self._line(made), self._line(used)
            term = ConstantTerm(
                op=call.name, cause=call.cause or "unknown", cut=cut, used=line, backward=backward,
                reduced=None if reduced is None else self._line(reduced),
            )  # fmt: skip
            leaves = [self._flow.leaf(read.leaf) for read in call.reads if read.leaf != NO_LEAF]
            others = frozenset(id(leaf) for leaf in leaves if leaf is not None and id(leaf) not in arrived)
            self._constant.setdefault((cut, line), (term, others))
        for numeric in number_terms(self._flow.calls, root):
            self._numeric.setdefault(self._flow.calls[numeric.made].frame, (numeric, backward))

    def _constant_terms(self) -> Iterator[ConstantTerm]:
        """Yield the terms without a graph; not those of weights that other calls train, where two take turns."""
        yield from (term for term, others in self._constant.values() if not others or not others <= self._filled)

    def _numeric_terms(self) -> Iterator[ConstantTerm]:
        """Yield the terms that are numbers taken out of tensors with a graph. NOTE [Where a number came from]."""
        calls, frames = self._flow.calls, self._recorder.frames
        exits = number_exits(calls, self._recorder.errors.leave_out) if self._numeric else {}
        for frame, (term, backward) in self._numeric.items() if exits else ():
            names = None if frame is None else self._flow.numbers.get(frame)
            if frame is None or names is None:
                continue
            found = exit_of_number(list(frames.chain(frame)), names, exits, lambda one: list(frames.chain(one)))
            if found is not None:
                yield ConstantTerm(
                    op=calls[found].name.strip("_"), cause="python", cut=self._line(found), used=self._line(term.used),
                    backward=backward,
                )  # fmt: skip

    def _note_what_may_be_meant(self, root: Read, call: EngineCall) -> None:
        if call.kind != "backward":
            return
        calls = self._flow.calls
        meant = list(bootstraps(calls, root))
        known = (
            {one.target for one in chosen_targets(calls, root, self._is_held)} if meant else set()
        )  # which are findings
        notes = [bootstrap_note(*map(self._line, one)) for one in meant if one.target not in known]
        self._perhaps |= dict.fromkeys(notes)

    def _missed_inputs(self, missed: Sequence[Any], call: EngineCall, backward: Frame | None) -> Iterator[Finding]:
        tensors = [value for value in missed if isinstance(value, torch.Tensor)]
        if not tensors or self._flow.is_full or not can_watch_storages():
            return
        noticed = NoticedAt(kind="grad", frame=backward)
        missing_input = MissingGradient(name="", kind="unread", noticed=noticed, backward=backward)
        names = names_of(tensors, self._recorder, call.frame)
        roots = [self._flow.read(output) for output in call.outputs if isinstance(output, torch.Tensor)]
        outcomes = outcomes_of(self._flow, [self._flow.read(tensor) for tensor in tensors], roots)
        yield from self._by_cause(
            [
                explained(self._flow, replace(missing_input, name=name), outcome, self._frame)
                for name, outcome in zip(names, outcomes, strict=True)
            ]
        )

    def _before_step(self, _optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Ignore an optimizer's own arithmetic, unless it runs the forward pass in a closure."""
        if not _has_closure(args, kwargs) and self._recorder.is_here:
            self._flow.num_pauses += 1

    def _after_step(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not _has_closure(args, kwargs) and self._recorder.is_here:
            self._flow.num_pauses = max(0, self._flow.num_pauses - 1)
        # inside backward nothing is missing yet: it has not reached all tensors
        if self._is_resting or is_inside_backward() or not self._roots or not self._recorder.is_active:
            return
        with plain_tensors_only():
            held = [tensor for group in optimizer.param_groups for tensor in group["params"]]
            without = [tensor for tensor in held if tensor.requires_grad and is_leaf(tensor) and tensor.grad is None]
            self._filled |= {id(tensor) for tensor in held if tensor.grad is not None}
            self._idle.stepped(optimizer)
            if not module_of(type(optimizer)).startswith("torch.optim"):  # it may be given the gradients
                without = [tensor for tensor in without if id(tensor) not in self.reached]
            self._last_calls[id(optimizer)] = self._num_calls
            self._want(without, held, lambda: self._step(optimizer), sys._getframe(1), id(optimizer))

    def _step(self, optimizer: Optimizer) -> NoticedAt:
        number = self._recorder.frames.number_of(sys._getframe(1))
        created = self._frame(self.created(optimizer))
        return NoticedAt(kind="step", frame=self._frame(number), by=name_of_optimizer(optimizer), created=created)

    def _want(
        self,
        tensors: Sequence[torch.Tensor],
        held: Sequence[torch.Tensor],
        noticed: Callable[[], NoticedAt],
        frame: FrameType,
        by: int = 0,
    ) -> None:
        """Store tensors that have no gradient, and that no call has reached so far."""
        self._last_calls.setdefault(by, self._num_calls)
        fresh = []
        for one in tensors:
            if (known := self._wanted.get(id(one))) is not None and known.tensor() is one:
                self._wanted[id(one)] = known._replace(read=self._flow.read(one), by=by, num_calls=self._num_calls)
            elif known is None and id(one) not in self._filled:
                fresh.append(one)
        if not fresh:
            return
        names = dict(zip(map(id, held), names_of(held, self._recorder, frame), strict=True))
        seen = [variable.value for variable in variables_from(frame) if isinstance(variable.value, nn.Module)]
        roots = [*seen, *self._recorder.called_modules()]
        called = {id(module()) for module in self._recorder.modules if module() is not None}
        why, backward = noticed(), self._roots[-1].backward
        late = list(late_functions(frame, self._recorder.called_modules()))
        for one in fresh:
            owner = owner_of(one, roots, called)
            read = self._flow.read(one)
            made = None if read.call == OUTSIDE else self._line(read.call)
            missing = MissingGradient(name=names[id(one)], kind="unread", noticed=why, backward=backward, made=made)
            reader = next((functions for functions in late if functions.leads_to(one)), None)
            kept = None if reader is None else reader._replace(values=())  # which would be kept alive
            self._wanted[id(one)] = _Wanted(HiddenRef(one), missing, owner, read, by, self._num_calls, kept)

    def _on_missing_grad(self, tensor: torch.Tensor, read: Read, frame: FrameType | None) -> None:
        """Look at a `.grad` that is None when the program reads it.

        A line that checks for None expects it, of a leaf or once; of a tensor that has outlived a backward call, and
        that none can fill, that check has no effect.
        """
        if frame is None or not self._roots or not is_own_file(frame.f_code.co_filename):
            return
        checks = any("None" in _ASSIGNS_NONE.sub("", line) for line in lines_from(frame, 2))
        if checks and not self._is_asked_without_effect(tensor):
            return
        line = self._frame(self._recorder.frames.number_of(frame))
        if is_leaf(tensor):
            self._last_calls[0] = self._num_calls
            self._want([tensor], [tensor], lambda: NoticedAt(kind="read", frame=line), frame)
        elif not tensor.retains_grad:
            (name,) = names_of([tensor], self._recorder, frame)
            made = None if read.call == OUTSIDE else self._flow.calls[read.call]
            op, where = ("", None) if made is None else (made.name, self._frame(made.frame))
            leaves = self._named_leaves(read.call, frame)
            fact = NonLeafGradient(
                name=name, op=op, made=where, backward=self._roots[-1].backward, read=line, leaves=leaves
            )
            self._nonleaf.append(fact)

    def _is_asked_without_effect(self, tensor: torch.Tensor) -> bool:
        """Return whether the program has asked a tensor that is not a leaf for its gradient before an earlier call."""
        if is_leaf(tensor):
            return False
        first = self._asked.get(id(tensor))
        if first is None or first.tensor() is not tensor:
            first = self._asked[id(tensor)] = _Asked(HiddenRef(tensor), len(self._roots))
        return len(self._roots) > first.num_calls

    def _named_leaves(self, call: int, frame: FrameType) -> list[str]:
        """Name the leaves that a tensor was computed from, and that the program can still reach by a name."""
        flow = self._flow
        numbers = {read.leaf for number in ancestors(flow.calls, call) for read in flow.calls[number].reads}
        leaves = [leaf for number in sorted(numbers - {NO_LEAF}) if (leaf := flow.leaf(number)) is not None]
        return [name for name in names_of(leaves, self._recorder, frame) if not name.startswith(UNNAMED)]

    def _other_backward(
        self, outcome: FlowOutcome, backward: Frame | None, reached: dict[int, set[int]]
    ) -> Frame | None:
        """Find another backward call that went through what was made of a detached value."""
        cut = outcome.cut
        if cut is None or outcome.kind != "cut" or outcome.cause not in ("detach", "data", "grad_off"):
            return None
        if cut not in reached:
            reached[cut] = descendants(self._flow.calls, cut)
        return next(
            (one.backward for one in self._roots if one.read.call in reached[cut] and one.backward != backward), None
        )

    def _is_trained(self, number: int) -> bool:
        """Return whether a leaf is a parameter, or an optimizer holds it."""
        leaf = self._flow.leaf(number)
        if leaf is None or isinstance(leaf, nn.Parameter):
            return leaf is not None
        return self._is_held(number)

    def _is_held(self, number: int) -> bool:
        """Return whether an optimizer holds a leaf."""
        leaf = self._flow.leaf(number)
        return any(one is leaf for optimizer in live_optimizers() for one in held_by(optimizer))

    def _by_cause(self, missing: Sequence[MissingGradient]) -> Iterator[Finding]:
        for group in by_cause(missing):
            yield from self._judged(group)

    def _judged(self, fact: object) -> Iterator[Finding]:
        return findings_on(fact, self._recorder.errors.found)

    def _caller(self, call: int) -> Frame | None:
        return self._frame(self._flow.caller_of(call))

    def _line(self, call: int) -> Frame | None:
        return self._frame(self._flow.calls[call].frame)

    def _frame(self, number: int | None) -> Frame | None:
        return self._recorder.frames.record(number, self._folder)


def _has_closure(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return any(callable(value) for value in (*args, *kwargs.values()))


def _is_in(value: Any, walk: Walk, reached: set[int]) -> bool:
    """Return whether a graph reaches a tensor or an edge."""
    if isinstance(value, torch.Tensor) and grad_fn_of(value) is None:
        return id(value) in reached
    return OutputTensor(None, value).edge[0] in walk.numbers
