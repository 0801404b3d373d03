"""Which gradients another loss has left, told to `OtherLosses` call by call."""

import pytest

from gradinspect.checks.evidence.training.other_losses import GradientPart, OtherLosses

CRITIC, ACTOR = 1, 2  # parameters, and their optimizers
OWN, OTHER = 10, 20  # the lines of both backward calls


def played(*, clears: bool = False, used_by_actor: int = 5, line: int = OTHER) -> list[bool]:
    """Let critic and actor learn in turn, and return for each step of the critic whether it applies the actor's."""
    log, found, time = OtherLosses(), [], 0
    for _ in range(3):
        if clears:
            log.cleared(CRITIC)
        time += 1
        log.reached(CRITIC, GradientPart(time, OWN, 7))
        left = log.step(CRITIC, [CRITIC])
        found.append(left is not None and left.backward == OTHER)
        log.cleared(CRITIC)
        time += 1
        log.reached(CRITIC, GradientPart(time, line, 7))
        log.reached(ACTOR, GradientPart(time, line, used_by_actor))
        log.step(ACTOR, [ACTOR])
        log.cleared(ACTOR)
    assert log.is_habit(CRITIC) == all(found[1:])  # the first step has nothing of it yet
    return found


def test_what_the_actor_leaves_in_the_critic_is_found() -> None:
    """The first step of the critic has nothing of it yet."""
    assert played() == [False, True, True]


@pytest.mark.parametrize(
    "options",
    [{"clears": True}, {"used_by_actor": 9}, {"line": OWN}],
    ids=["cleared in between", "a trunk before its heads", "one loss for both"],
)
def test_gradients_that_are_added_up_on_purpose_are_not(options: dict[str, int]) -> None:
    """Each of these is a common loop."""
    assert not any(played(**options))  # type: ignore[arg-type]


def test_a_step_that_may_show_it_again_is_waited_for() -> None:
    """Once is no habit."""
    log = OtherLosses()
    log.reached(CRITIC, GradientPart(1, OTHER, 7))
    log.reached(ACTOR, GradientPart(1, OTHER, 5))
    log.step(ACTOR, [ACTOR])
    log.reached(CRITIC, GradientPart(2, OWN, 7))

    assert not log.waits()
    assert log.step(CRITIC, [CRITIC]) is not None
    assert log.waits()
    assert not log.is_habit(CRITIC)


def test_nothing_is_known_after_a_call_that_is_not_observed() -> None:
    """It may have been for any optimizer."""
    log = OtherLosses()
    log.reached(CRITIC, GradientPart(1, OTHER, 7))
    log.unobserved()

    assert log.step(CRITIC, [CRITIC]) is None


@pytest.mark.parametrize(("reaches_both", "is_left"), [(True, True), (False, False)])
def test_it_must_have_left_something_in_all_gradients(*, reaches_both: bool, is_left: bool) -> None:
    """Of those that a step applies; what only one of them has may be a loss of its own."""
    log, second = OtherLosses(), 3
    for parameter in (CRITIC, second) if reaches_both else (CRITIC,):
        log.reached(parameter, GradientPart(1, OTHER, 7))
    log.reached(ACTOR, GradientPart(1, OTHER, 5))
    log.step(ACTOR, [ACTOR])
    for parameter in (CRITIC, second):
        log.reached(parameter, GradientPart(2, OWN, 7))
    left = log.step(CRITIC, [CRITIC, second])

    assert (left is not None) == is_left


def test_what_is_not_known_to_come_before_is_not_said() -> None:
    """A parameter without a known use, or an optimizer that has stepped after that backward itself."""
    for use, steps_itself, is_left in ((7, False, True), (None, False, False), (7, True, False)):
        log = OtherLosses()
        log.reached(CRITIC, GradientPart(1, OTHER, use))
        log.reached(ACTOR, GradientPart(1, OTHER, 5))
        log.step(ACTOR, [ACTOR])
        if steps_itself:
            log.step(CRITIC, [CRITIC])
        log.reached(CRITIC, GradientPart(2, OWN, use))

        assert (log.step(CRITIC, [CRITIC]) is not None) == is_left


def test_only_the_latest_parts_are_known() -> None:
    """Eight of each gradient."""
    for between, is_left in ((6, True), (7, False)):
        log = OtherLosses()
        log.reached(CRITIC, GradientPart(1, OTHER, 7))
        log.reached(ACTOR, GradientPart(1, OTHER, 5))
        log.step(ACTOR, [ACTOR])
        for time in range(between + 1):
            log.reached(CRITIC, GradientPart(2 + time, OWN, 7))

        assert (log.step(CRITIC, [CRITIC]) is not None) == is_left


def rivals(*, through_both: bool = True, rival_steps: bool = False, line: int = OTHER) -> list[bool]:
    """Let a discriminator and then a generator learn, and return for each step of the latter what it applies."""
    maker, judge = CRITIC, ACTOR
    log, found, time = OtherLosses(), [], 0
    for _ in range(3):
        log.cleared(maker)
        log.cleared(judge)
        time += 1
        log.reached(maker, GradientPart(time, line, 3))
        log.reached(judge, GradientPart(time, line, 5))
        log.step(judge, [judge])
        log.cleared(judge)
        time += 1
        log.reached(maker, GradientPart(time, OWN, 3))
        if through_both:
            log.reached(judge, GradientPart(time, OWN, 5))
        found.append(log.step(maker, [maker]) is not None)
        if rival_steps:
            log.step(judge, [judge])
    assert log.is_habit(maker) == all(found)
    return found


def test_what_the_discriminator_leaves_in_the_generator_is_found() -> None:
    """Its own backward goes through both; and what it leaves in the discriminator is for nobody."""
    assert rivals() == [True, True, True]


@pytest.mark.parametrize(
    "options", [{"through_both": False}, {"rival_steps": True}, {"line": OWN}], ids=["a head", "both step", "one line"]
)
def test_what_a_head_leaves_in_its_trunk_is_not(options: dict[str, int]) -> None:
    """Nor what both optimizers apply."""
    assert not all(rivals(**options))  # type: ignore[arg-type]
