"""Passes the calls of some functions to the logs that look at their arguments."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from gradinspect.checks.evidence.arguments.arithmetic import ArithmeticLog
from gradinspect.checks.evidence.arguments.changed_samples import SampleLog
from gradinspect.checks.evidence.arguments.evaluations import EvaluationLog
from gradinspect.checks.evidence.arguments.few_drawn import FewDrawnLog
from gradinspect.checks.evidence.arguments.initial_values import InitialValueLog
from gradinspect.checks.evidence.arguments.labels import LabelLog
from gradinspect.checks.evidence.arguments.made_layers import MadeLayerLog
from gradinspect.checks.evidence.arguments.masks import MaskLog
from gradinspect.checks.evidence.arguments.recurrent_axes import RecurrentAxisLog
from gradinspect.checks.evidence.arguments.repeated_batches import RepeatedBatchLog
from gradinspect.checks.evidence.arguments.saturated_units import SaturatedLog
from gradinspect.checks.evidence.arguments.similarities import SimilarityLog
from gradinspect.checks.evidence.arguments.summed_columns import SummedColumnLog
from gradinspect.checks.evidence.arguments.twins import TwinLog
from gradinspect.checks.evidence.axes.example_axes import ExampleAxisLog
from gradinspect.checks.evidence.axes.mixed_pixels import MixedPixelLog
from gradinspect.checks.evidence.axes.other_axes import OtherAxisLog
from gradinspect.checks.evidence.axes.padded_ends import PaddedEndLog
from gradinspect.checks.evidence.axes.same_places import SamePlaceLog
from gradinspect.checks.evidence.axes.views import ViewLog
from gradinspect.checks.evidence.objectives.close_scores import CloseScoreLog
from gradinspect.checks.evidence.objectives.hidden_tokens import HiddenTokenLog
from gradinspect.checks.evidence.targets.adversaries import AdversaryLog
from gradinspect.checks.evidence.targets.class_weights import ClassWeightLog
from gradinspect.checks.evidence.targets.cut_values import CutLog
from gradinspect.checks.evidence.targets.exchanged import ExchangeLog
from gradinspect.checks.evidence.targets.far_targets import FarTargetLog
from gradinspect.checks.evidence.targets.ignored import IgnoredLog
from gradinspect.checks.evidence.targets.label_runs import LabelRunLog
from gradinspect.checks.evidence.targets.one_order import OneOrderLog
from gradinspect.checks.evidence.targets.orders import OrderLog
from gradinspect.checks.evidence.targets.other_draws import OtherDrawLog
from gradinspect.checks.evidence.targets.ranges import RangeLog
from gradinspect.checks.evidence.targets.several_labels import SeveralLabelLog
from gradinspect.checks.evidence.targets.tokens import TokenLog
from gradinspect.checks.evidence.targets.turned_apart import TurnedApartLog
from gradinspect.checks.evidence.targets.uninformative import UninformativeLog
from gradinspect.checks.evidence.targets.unread_flags import UnreadFlagLog
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.axes import MixedPixels, MovedByView
from gradinspect.checks.facts.targets import EqualLabels, FewDrawn
from gradinspect.checks.facts.value_flow import short_name
from gradinspect.graph import Frame
from gradinspect.recording.transparency.own_errors import OwnErrors
from gradinspect.torch_api.modes import unobserved


class ArgumentLog(Protocol):
    """Looks at the calls of some functions."""

    functions: frozenset[str]  # their short names, without underscores at the ends

    def note(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call that has returned, given the frame that it is on."""

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[object]:
        """Yield what all calls together show."""


class ArgumentLogs:
    """All of them."""

    def __init__(self, flow: Dataflow, errors: OwnErrors) -> None:
        """Share the calls that made the arguments; what is too large to be looked at is counted by `errors`."""
        self.twins = TwinLog(flow, errors)
        self.samples = SampleLog(errors)
        self.evaluations = EvaluationLog(flow)
        self.pixels = MixedPixelLog(errors)
        self.draws = FewDrawnLog(flow)
        self.columns = SummedColumnLog(errors)
        self._arithmetic = ArithmeticLog(flow, errors)
        self._logs: tuple[ArgumentLog, ...] = (
            MadeLayerLog(flow),  # others ask it
            LabelLog(flow, errors), self.twins, MaskLog(flow, errors), SimilarityLog(flow, errors),
            InitialValueLog(flow, errors), RecurrentAxisLog(flow), PaddedEndLog(flow), ExampleAxisLog(flow),
            self.samples, self.evaluations,
            ViewLog(flow), TokenLog(flow, errors), RangeLog(flow, errors),
            IgnoredLog(flow, errors), UninformativeLog(flow, errors), OrderLog(flow), OneOrderLog(flow),
            OtherAxisLog(flow), OtherDrawLog(flow), RepeatedBatchLog(flow), CutLog(flow, errors),
            AdversaryLog(flow, errors), ExchangeLog(flow, errors), ClassWeightLog(flow, errors),
            LabelRunLog(flow, errors), self.pixels, FarTargetLog(flow, errors), UnreadFlagLog(flow),
            TurnedApartLog(flow), self.draws, SeveralLabelLog(flow, errors),
            HiddenTokenLog(flow), SaturatedLog(flow), CloseScoreLog(flow), SamePlaceLog(flow),
            self._arithmetic,
        )  # fmt: skip

    def of(self, name: str) -> tuple[ArgumentLog, ...]:
        """Return those that look at a function."""
        plain = plain_name(name)
        logs = self._logs if plain in ArithmeticLog.functions else (*self._logs, *self._arithmetic.users)
        return tuple(log for log in logs if plain in log.functions)

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[object]:
        """Yield what they have seen. What they compute for it is no call of the program."""
        with unobserved():
            found = [fact for log in self._logs for fact in log.facts(frame_of)]
            if any(isinstance(fact, MovedByView) for fact in found):
                found = [fact for fact in found if not isinstance(fact, MixedPixels)]  # whose line is known
            if any(isinstance(fact, FewDrawn) for fact in found):
                found = [fact for fact in found if not isinstance(fact, EqualLabels)]  # of the few that are drawn
            columns = list(self.columns.facts(frame_of))
        yield from (*found, *columns)


def plain_name(name: str) -> str:
    """Return the name of a function without its module, and without underscores at its ends."""
    return short_name(name).strip("_")
