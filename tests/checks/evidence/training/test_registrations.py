"""When modules and parameters became part of their modules."""

import sys

from torch import nn

from gradinspect.checks.evidence.training.log import assigned_name
from gradinspect.checks.evidence.training.registrations import Registrations
from gradinspect.graph import Frame
from gradinspect.recording.recorder import Recorder


def test_the_first_and_the_last_registration_are_known() -> None:
    """With their order and line; of another object of that id, or of nothing, there is none."""
    log = Registrations(Recorder())
    holder, member, weight = nn.Module(), nn.ReLU(), nn.Parameter(nn.Linear(1, 1).weight.detach())
    line = sys._getframe().f_lineno
    log.module(holder, "first", member, sys._getframe())
    log.module(holder, "second", member, sys._getframe())
    log.module(holder, "nothing", None, sys._getframe())
    log.parameter(holder, "weight", weight, sys._getframe())
    log.parameter(holder, "nothing", None, sys._getframe())
    first, last, own = log.first_of(member), log.of(member), log.of(weight)

    assert first is not None
    assert last is not None
    assert own is not None
    assert [one.order for one in (first, last, own)] == [1, 2, 3]
    lines = [next(log.recorder.frames.chain(one.frame or 0))[1] - line for one in (first, last, own)]
    assert lines == [1, 2, 4]
    assert (log.of(holder), log.first_of(nn.ReLU()), log.unfrozen(weight)) == (None, None, None)
    assert not any(one.is_replacement for one in (first, last, own))


def test_what_replaces_another_under_its_name() -> None:
    """Again, if the same line has done so before; to assign the same once more replaces nothing."""
    log, holder = Registrations(Recorder()), nn.Module()
    members = [nn.ReLU() for _ in range(4)]
    for member in members[:3]:
        log.module(holder, "act", member, sys._getframe())
        holder.act = member
    log.module(holder, "act", members[2], sys._getframe())
    log.module(holder, "act", members[3], sys._getframe())
    found = [log.first_of(member) for member in members]

    assert [one and (one.is_replacement, one.is_again) for one in found] == [
        (False, False), (True, False), (True, True), (True, False),
    ]  # fmt: skip
    same = log.of(members[2])
    assert same is not None
    assert not same.is_replacement


def test_a_parameter_that_begins_to_require_grad() -> None:
    """It comes after the registrations before, and before an optimizer that is made then."""
    log, weight = Registrations(Recorder()), nn.Linear(1, 1).weight
    log.parameter(nn.Module(), "w", weight, sys._getframe())
    log.unfreeze(weight, sys._getframe())
    thawed = log.unfrozen(weight)

    assert thawed is not None
    assert (thawed.order, thawed.is_replacement, thawed.is_again) == (2, False, False)
    assert log.order == 2


def test_the_variable_that_a_line_assigns_to() -> None:
    """A plain one, or an attribute; not where the line has several statements, or compares."""
    codes = ["opt = SGD()", "self.opt = SGD()", "opt, other = f()", "opt == other", "a = 1; b = 2", "f()", ""]
    names = [assigned_name(Frame(file="a.py", line=1, code=code)) for code in codes]

    assert names == ["opt", "self.opt", None, None, None, None, None]
    assert assigned_name(None) is None
