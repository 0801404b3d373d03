"""`check`: what is wrong with a training step?"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from msgspec.structs import replace

from gradinspect.checks.evidence.observer import ChecksObserver
from gradinspect.checks.findings import Findings, check_codes
from gradinspect.checks.registry import codes
from gradinspect.checks.verdict import Selection, without_comments
from gradinspect.errors import GradInspectError, text_of
from gradinspect.live.session import LiveSession
from gradinspect.live.stepping import call_step, name_of_step, no_backward
from gradinspect.recording.names import members_of, unwrapped_module
from gradinspect.recording.recorder import Recorder
from gradinspect.runner.observer import Observer
from gradinspect.runner.program import without_our_frames

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
        steps: How often to call it; by default until each optimizer has stepped twice, at most 12 times.
        select: Codes to report, such as `"GI101"`, or `"GI1"` for all that begin with it; by default all.
        skip: Codes not to report.
        gradcheck: Check custom Functions by finite differences too.

    Returns:
        The findings, without those that a comment `# gradinspect: ignore[...]` names. `if findings:` is true if there
        are any, and `str(findings)` is the report.

    Raises:
        GradInspectError: A code is unknown, or no backward was called and nothing with a graph was returned.
    """
    known = codes()
    selection = Selection(check_codes(select, known), check_codes(skip, known), gradcheck)
    return _checked(step, steps, selection).found


class TrainingCheck(NamedTuple):
    """What training steps have shown."""

    findings: Findings
    unlearned: tuple[str, ...]  # parameters that got no finite gradient other than zero
    failed: bool  # the step raised an error


def check_training(step: Callable[[], object], steps: int | None) -> TrainingCheck:
    """Check a training step, and list the parameters of its models that do not learn.

    Raises:
        GradInspectError: No backward was called and nothing with a graph was returned.
    """
    checked = _checked(step, steps, Selection())
    observer, recorder = checked.observer, checked.recorder
    learned = observer.learned if isinstance(observer, ChecksObserver) else frozenset()
    names = [
        member.path
        for root in map(unwrapped_module, recorder.called_modules())
        for member in members_of(root)
        if member.tensor is not None and member.tensor.requires_grad and id(member.tensor) not in learned
    ]
    return TrainingCheck(checked.found, tuple(dict.fromkeys(names)), checked.failed)


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
    with LiveSession(lambda run: ChecksObserver(run, steps, gradcheck=selection.gradcheck), name) as session:
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
