"""Steps that call their closure again and again."""

import threading

import torch
from torch import nn

from gradinspect.checks.evidence.training.closures import ClosureUse


def test_lbfgs_is_known_to_repeat_its_closure_while_it_steps() -> None:
    """From the third call on, and not after the step."""
    model = nn.Linear(2, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)
    use, seen = ClosureUse(), []

    def closure() -> torch.Tensor:
        seen.append(use.repeating() is optimizer)
        optimizer.zero_grad()
        loss = (model(torch.ones(3, 2)) - 1).square().mean()
        loss.backward()
        return loss

    use.begin(optimizer, 1, None)
    optimizer.step(closure)
    use.end()

    assert seen[:3] == [False, False, True]
    assert use.repeating() is None


def test_an_optimizer_that_steps_once_for_each_closure_does_not_count() -> None:
    """SGD calls it once."""
    use = ClosureUse()
    use.begin(torch.optim.SGD(nn.Linear(2, 1).parameters(), lr=0.1), 1, None)

    assert use.repeating() is None


def test_only_the_calls_of_the_step_that_runs_are_counted() -> None:
    """Not those of the steps before it."""
    model = nn.Linear(2, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)
    use = ClosureUse()
    steps: list[list[bool]] = []

    def closure() -> torch.Tensor:
        steps[-1].append(use.repeating() is optimizer)
        optimizer.zero_grad()
        loss = (model(torch.ones(3, 2)) - 1).square().mean()
        loss.backward()
        return loss

    for number in range(2):
        steps.append([])
        use.begin(optimizer, number, 10 + number)
        optimizer.step(closure)

    assert [step[:1] for step in steps] == [[False]] * 2
    assert steps[0][2:] == [True] * len(steps[0][2:])
    assert (use.since, use.step) == (1, 11)
    assert ClosureUse().num_before == 0


def test_each_thread_has_the_step_that_it_runs() -> None:
    """The end of a step in another thread does not end this one."""
    model = nn.Linear(2, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)
    use, seen = ClosureUse(), []

    def elsewhere() -> None:
        seen.append(use.repeating())
        use.end()

    def closure() -> torch.Tensor:
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        seen.append(use.repeating())
        loss = (model(torch.ones(3, 2)) - 1).square().mean()
        loss.backward()
        return loss

    use.begin(optimizer, 1, None)
    optimizer.step(closure)

    assert seen[:6] == [None, None, None, None, None, optimizer]
