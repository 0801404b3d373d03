"""Run a program in eager and compiled, and compare what a step computes."""

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

import msgspec

from gradinspect.analyses.diff.compiled import STAGES, UNCUT, CompiledDiff, StepValues, judge, stages_before
from gradinspect.cli.options.whole_steps import check_can_run_again, check_runs_alone
from gradinspect.cli.output.printing import print_message
from gradinspect.cli.running import questions
from gradinspect.cli.running.forked_runs import ForkedRuns
from gradinspect.errors import GradInspectError, ScriptFailedError
from gradinspect.renderers.terminal.compilation import uncompiled_words
from gradinspect.request import CompiledRegion, CompiledRun, Request

ROUNDINGS: Final = (1, 2, 3)
MOST_REGIONS = 12  # for each the program runs once more


def compare_compiled(request: Request) -> CompiledDiff:
    """Compare a compiled program with itself in eager, and find out where it goes wrong.

    Args:
        request: The program.

    Raises:
        GradInspectError: It compiles nothing, or has no backward call.
        ScriptFailedError: It failed.
    """
    with tempfile.TemporaryDirectory(prefix="gradinspect-") as folder:
        return _Runs(request, folder).compared()


def check_is_comparable(request: Request, without: Mapping[str, object]) -> None:
    """Check that a program can be compared with itself.

    Args:
        request: The program.
        without: The values of options that have no effect on it.

    Raises:
        GradInspectError: It cannot, or such an option was given.
    """
    extra = next((option for option, value in without.items() if value), None)
    if extra is not None:
        raise GradInspectError(f"'{extra}' has no effect with '--compiled'.", "Remove one of them.")
    check_can_run_again(request, "--compiled")
    check_runs_alone("--compiled")
    if request.eager or request.fake:
        option = "--eager" if request.eager else "--fake"
        raise GradInspectError(f"'{option}' cannot be combined with '--compiled'.", "Remove one of them.")


class _Runs:
    def __init__(self, request: Request, folder: str) -> None:
        self._request = request
        self._how = CompiledRun(folder=folder)
        self._runs = ForkedRuns(request)

    def compared(self) -> CompiledDiff:
        try:
            first = self._run(replace(self._how, keeps=True), eager=True, is_silent=self._request.quiet)
        except ScriptFailedError as error:
            failure = error
        else:
            return self._beside(first)
        return self._beside_failure(failure)

    def _beside(self, first: StepValues) -> CompiledDiff:
        """Compare with what eager has computed.

        Raises:
            GradInspectError: Nothing is compiled.
            ScriptFailedError: The program fails, compiled.
        """
        self._how = replace(self._how, num_calls=len(first.calls))
        rounded = [self._run(replace(self._how, rounding=number), eager=True) for number in ROUNDINGS]
        compiled = self._compiled()
        label = self._request.label
        if not compiled.num_graphs:
            raise GradInspectError(
                f"'{label}' compiles nothing before its first step ends, so there is nothing to compare.",
                _why_nothing(compiled),
            )
        found = judge(label, rounded, compiled)
        if found.is_same:
            return found
        blamed = self._blamed(found, rounded)
        is_named = blamed.is_line_known and (blamed.part or len(blamed.backends) == 1)
        return blamed if is_named else self._in_regions(blamed, compiled.regions, rounded)

    def _beside_failure(self, failure: ScriptFailedError) -> CompiledDiff:
        """Find the first backend with which a program goes on that fails in eager.

        Raises:
            ScriptFailedError: It fails, compiled, as well.
        """
        compiled = self._stage(None)
        if compiled is None or not compiled.num_graphs:
            raise failure
        right: list[str] = []
        for stage in stages_before(compiled.backends):
            print_message(f"Running with backend {stage} ...")
            if self._stage(stage) is not None:
                break
            right.append(stage)
        else:
            stage = ", ".join(compiled.backends)
        unread = msgspec.structs.replace(compiled, values=())
        found = judge(self._request.label, [unread], unread)
        return msgspec.structs.replace(found, stage=stage, right=tuple(right), eager_failure=str(failure))

    def _blamed(self, found: CompiledDiff, rounded: Sequence[StepValues]) -> CompiledDiff:
        """Find the first backend with which the program goes wrong, and the operator."""
        right: list[str] = []
        failed: list[str] = []
        for stage in stages_before(found.backends):
            print_message(f"Comparing with backend {stage} ...")
            values = self._stage(stage)
            if values is None:
                failed.append(stage)
            elif not judge(self._request.label, rounded, values).is_same:
                uncut = self._uncut(stage, rounded)
                drawn = self._replayed(stage).drawn_again if uncut else None
                right += uncut
                return msgspec.structs.replace(
                    found, stage=stage, right=tuple(right), failed=tuple(failed), operator=drawn
                )
            else:
                right.append(stage)
        print_message("Comparing operator by operator ...")
        replayed = self._replayed()
        stage = ", ".join(found.backends)
        uncut = self._uncut(stage, rounded)
        drawn = replayed.drawn_again if uncut else None
        right += uncut
        return msgspec.structs.replace(
            found,
            stage=stage,
            right=tuple(right),
            failed=tuple(failed),
            operator=replayed.first_wrong or drawn,
            num_replayed=replayed.num_replayed,
            replay_problem=replayed.replay_problem,
        )

    def _in_regions(
        self, found: CompiledDiff, regions: Sequence[CompiledRegion], rounded: Sequence[StepValues]
    ) -> CompiledDiff:
        """Find which of several regions is wrong: each is compiled as before, and the others as far as is right."""
        if len(regions) <= 1 or len(regions) > MOST_REGIONS:
            return msgspec.structs.replace(found, regions=tuple(regions[:1]) if len(regions) == 1 else ())
        print_message(f"Compiling one of {len(regions):,} regions at a time ...")
        backend = found.stage if found.part else None
        beside = next((stage for stage in reversed(found.right) if stage in STAGES), "")
        runs = {region: self._stage(backend, region, beside) for region in regions}
        judged = {
            region: judge(self._request.label, rounded, values).is_same
            for region, values in runs.items()
            if values is not None
        }
        wrong = tuple(region for region, is_right in judged.items() if not is_right)
        asked = ", ".join(dict.fromkeys(region.backend for region in wrong))
        return msgspec.structs.replace(
            found,
            stage=found.stage if found.part or not asked else asked,
            regions=wrong,
            num_right_regions=sum(judged.values()),
        )

    def _uncut(self, stage: str, rounded: Sequence[StepValues]) -> list[str]:
        """Return the backend without torch's partitioner, if that alone is what a stage is wrong by."""
        values = self._stage(UNCUT) if stage == "aot_eager" else None
        is_right = values is not None and judge(self._request.label, rounded, values).is_same
        return [UNCUT] if is_right else []

    def _compiled(self) -> StepValues:
        """Run the program as it is; what it printed is shown if it fails."""
        with suppress(ScriptFailedError):
            return self._run(self._how)
        # Outside of the handler: what the program raises would be told to be raised while our error was handled.
        return self._run(self._how, is_silent=False)

    def _stage(self, backend: str | None, alone: CompiledRegion | None = None, beside: str = "") -> StepValues | None:
        """Run it with another backend, or with its own; None if that fails."""
        try:
            return self._run(replace(self._how, backend=backend, alone=alone, beside=beside))
        except (GradInspectError, ScriptFailedError):
            return None

    def _replayed(self, backend: str | None = None) -> StepValues:
        try:
            return self._run(replace(self._how, replays=True, backend=backend))
        except (GradInspectError, ScriptFailedError) as error:
            return StepValues(replay_problem=str(error).rstrip("."))

    def _run(self, how: CompiledRun, *, eager: bool = False, is_silent: bool = True) -> StepValues:
        request = replace(self._request, eager=eager)
        return self._runs.run(request, questions.step_values(how), StepValues, is_silent=is_silent)


def _why_nothing(compiled: StepValues) -> str:
    """Say why no graph was made."""
    if not compiled.backends:
        return "Does it call torch.compile?"
    if compiled.breaks:
        return f"torch.compile gave up: {compiled.breaks[0]}."
    if compiled.uncompiled:
        return f"{uncompiled_words(compiled.uncompiled)}."
    return "It calls torch.compile: does it call what that returns, and before its first step ends?"
