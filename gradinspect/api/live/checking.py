"""`check`: what is wrong with a training step?"""

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FunctionType
from typing import Final, NamedTuple

from msgspec.structs import replace
from torch import nn

from gradinspect.api.live.session import LiveSession
from gradinspect.api.live.stepping import call_step, name_of_step, no_backward
from gradinspect.checks.evidence.observer import ChecksObserver
from gradinspect.checks.findings import Findings
from gradinspect.checks.settings import read_settings, selection_of
from gradinspect.checks.verdict import Selection, without_comments
from gradinspect.errors import GradInspectError, text_of
from gradinspect.recording.names.names import Member, members_of, unwrapped_module
from gradinspect.recording.names.variables import isinstance_safely
from gradinspect.recording.recorder import Recorder
from gradinspect.runner.observer import Observer
from gradinspect.runner.programs.program import without_our_frames
from gradinspect.torch_api.patching.originals import ops

MOST_STEPS: Final = 12


def check(
    step: Callable[[], object],
    *,
    steps: int | None = None,
    select: Sequence[str] = (),
    skip: Sequence[str] = (),
    gradcheck: bool = False,
) -> Findings:
    """Run a training step several times, and report what is wrong with its backward: which lines, why, what to do.

    The step runs for real, so the model learns and the optimizer steps. A step that calls no backward, but returns a
    tensor with a graph, is followed by the backward of its sum. If the step fails, what was found until then is
    returned with a note of the error; if nothing was found, the error is raised.

    Args:
        step: A function without arguments: forward, backward, and the optimizer's step, if there is one.
        steps: How often to call it; by default as `[tool.gradinspect]` says, or else until each optimizer has stepped
            twice, at most 12 times.
        select: Codes to report, such as `"GI101"`, or `"GI1"` for all that begin with it; by default those that
            `[tool.gradinspect]` in the pyproject.toml of the file that defines the step selects, or else all.
        skip: Codes not to report, beside those that `[tool.gradinspect]` skips.
        gradcheck: Check custom Functions by finite differences too.

    Returns:
        The findings, without those that a comment `# gradinspect: ignore[...]` names. `if findings:` is true if there
        are any, and `str(findings)` is the report.

    Raises:
        GradInspectError: A code is unknown, the settings are wrong, or no backward was called and nothing with a graph
            was returned.
    """
    settings = read_settings(_folder_of(step))
    selection = selection_of(settings, select, skip, gradcheck=gradcheck)
    return _checked(step, steps or settings.steps, selection).found


def _function_of(step: Callable[[], object]) -> FunctionType | None:
    """Return the function behind a step, which may be a method, a partial or an object that is called."""
    inner = getattr(step, "func", step)  # of a functools.partial
    for one in (inner, getattr(inner, "__func__", None), vars(type(inner)).get("__call__")):
        if isinstance(one, FunctionType):
            return one
    return None


def _folder_of(step: Callable[[], object]) -> Path:
    """Return the folder of the file that defines a step; the current one for one that has no file."""
    function = _function_of(step)
    file = Path("" if function is None else function.__code__.co_filename)
    return file.parent if file.is_absolute() and file.exists() else Path.cwd()


def _variables_of(step: Callable[[], object]) -> dict[int, str]:
    """Name the parameters of the modules that a step knows as variables: `net.1.weight`."""
    function = _function_of(step)
    found: dict[int, str] = {}
    try:
        variables = None if function is None else inspect.getclosurevars(function)
    except ValueError:  # one is not assigned yet
        variables = None
    for name, value in () if variables is None else (*variables.nonlocals.items(), *variables.globals.items()):
        for member in members_of(value) if isinstance_safely(value, (nn.Module,)) else ():
            found.setdefault(id(member.tensor), f"{name}.{member.path}")
    return found


class TrainingCheck(NamedTuple):
    """What training steps have shown."""

    findings: Findings
    unlearned: tuple[str, ...]  # parameters that got no finite gradient other than zero
    unmeasured: dict[str, str]  # parameters of which that is not known -> why
    failed: bool  # the step raised an error


def check_training(step: Callable[[], object], steps: int | None) -> TrainingCheck:
    """Check a training step, and list the parameters of its models that do not learn.

    Raises:
        GradInspectError: No backward was called and nothing with a graph was returned.
    """
    checked = _checked(step, steps, Selection())
    observer, recorder = checked.observer, checked.recorder
    learned = observer.learned if isinstance(observer, ChecksObserver) else frozenset()
    reasons = observer.unmeasured if isinstance(observer, ChecksObserver) else {}
    named = _variables_of(step)
    names = [
        (
            member.path if "." in member.path else named.get(id(member.tensor), f"{type(root).__name__}.{member.path}"),
            reasons.get(id(member.tensor)),
        )
        for root in map(unwrapped_module, recorder.called_modules())
        for member in members_of(root)
        if _may_learn(member) and id(member.tensor) not in learned
    ]
    unlearned = tuple(dict.fromkeys(name for name, reason in names if reason is None))
    unmeasured = {name: reason for name, reason in names if reason is not None}
    return TrainingCheck(checked.found, unlearned, unmeasured, checked.failed)


def _may_learn(member: Member) -> bool:
    """Return whether a parameter should get a gradient; one without elements has nothing to learn."""
    tensor = member.tensor
    return tensor is not None and tensor.requires_grad and ops.numel(tensor) > 0


def check_once(run: Callable[[], bool], label: str) -> Findings | None:
    """Check what runs once, such as a cell, which may have a loop; None if it failed, and nothing was found.

    Args:
        run: Runs it, and returns whether it succeeded; it has shown its own errors.
        label: What it is called in reports.

    Raises:
        GradInspectError: It calls no backward.
    """
    with LiveSession(lambda observed: ChecksObserver(observed, None), label) as session:
        succeeded = session.call(run)
        session.run.has_failed = not succeeded
    found = session.result()
    if found is None and succeeded:
        raise GradInspectError(f"'{label}' calls no backward.", "Check a cell that trains.")
    return None if found is None else without_comments(found, Selection(), _relative_to_here)


class _Checked(NamedTuple):
    found: Findings
    observer: Observer[Findings]
    recorder: Recorder
    failed: bool


def _checked(step: Callable[[], object], steps: int | None, selection: Selection) -> _Checked:
    name = name_of_step(step)
    failure = None
    with LiveSession(
        lambda run: ChecksObserver(run, steps, gradcheck=selection.gradcheck, is_on=selection.has), name
    ) as session:
        try:
            _run_steps(session, step, steps)
        except Exception as error:
            session.run.has_failed = True
            failure = error
    found = session.result()
    if found is not None:
        found = without_comments(found, selection, _relative_to_here)
    if failure is not None:
        if not found:
            raise without_our_frames(failure)
        said = " ".join(text_of(failure).split())
        found = replace(found, notes=(*found.notes, f"The step failed with {type(failure).__name__}: {said}"))
    if found is None:
        raise no_backward(name)
    return _Checked(found, session.observer, session.run.recorder, failure is not None)


def _run_steps(session: LiveSession[Findings], step: Callable[[], object], steps: int | None) -> None:
    for _ in range(steps or MOST_STEPS):
        if not call_step(session, step) or (steps is None and session.observer.has_enough):
            return


def _relative_to_here(file: str) -> str:
    return Path(file).as_posix()
