"""`check` of a function in the caller's process."""

import runpy
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

import gradinspect as gi


def training(*, clears: bool = True, detaches: bool = False) -> Callable[[], None]:
    """Return a step of a small model, with the mistakes that are asked for."""
    torch.manual_seed(0)
    first, last = nn.Linear(4, 8), nn.Linear(8, 1)
    optimizer = torch.optim.SGD([*first.parameters(), *last.parameters()], lr=0.1)

    def step() -> None:
        if clears:
            optimizer.zero_grad()
        hidden = first(torch.ones(3, 4))
        last(hidden.detach() if detaches else hidden).square().mean().backward()
        optimizer.step()

    return step


def test_a_correct_step_has_no_findings() -> None:
    """The findings are false, and say so."""
    found = gi.check(training())

    assert not found
    assert str(found).startswith("No problems found in ")
    assert repr(found) == "<Findings of step: 0 findings>"


@pytest.mark.parametrize(("mistake", "code"), [({"clears": False}, "GI362"), ({"detaches": True}, "GI301")])
def test_a_mistake_is_found_with_its_lines(mistake: dict[str, bool], code: str) -> None:
    """As by the command line, although the optimizer and the model were made before."""
    found = gi.check(training(**mistake))

    assert [finding.code for finding in found] == [code]
    assert "test_checking.py" in found.findings[0].places[0].file
    assert str(found).startswith(code)


def test_codes_are_selected() -> None:
    """An unknown one is an error that names no option."""
    assert not gi.check(training(clears=False), skip=["GI362"])
    with pytest.raises(gi.GradInspectError, match="No rule has the code 'GI999'") as caught:
        gi.check(training(), select=["GI999"])
    assert "--" not in str(caught.value)


@pytest.mark.slow
def test_the_settings_of_the_project_count(tmp_path: Path) -> None:
    """Those for the file that defines the step; arguments count more."""
    (tmp_path / "steps.py").write_text(
        "import torch\nnet = torch.nn.Linear(2, 1)\noptimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "def step():\n    net(torch.ones(3, 2)).sum().backward()\n    optimizer.step()\n"
    )
    step = runpy.run_path(str(tmp_path / "steps.py"))["step"]
    assert [finding.code for finding in gi.check(step)] == ["GI362"]

    (tmp_path / "pyproject.toml").write_text('[tool.gradinspect]\nskip = ["GI362"]\nsteps = 3\n')
    assert not gi.check(step)
    assert gi.check(step).num_calls == 3
    assert gi.check(step, select=["GI3"])


@pytest.mark.slow
def test_a_comment_ignores_a_finding() -> None:
    """On a line that it names."""
    net = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def step() -> None:
        net(torch.ones(1, 2)).sum().backward()  # gradinspect: ignore[GI362] gradients add up on purpose
        optimizer.step()

    found = gi.check(step)

    assert not found
    assert [finding.code for finding in found.suppressed] == ["GI362"]


def test_a_failing_step_is_explained_or_raised() -> None:
    """What explains the error is returned with it; an error that nothing explains is the step's own."""
    weight = torch.ones(3, requires_grad=True)

    def overwrites() -> None:
        value = weight.exp()
        value.mul_(2)
        value.sum().backward()

    def fails() -> None:
        raise ZeroDivisionError

    found = gi.check(overwrites)

    assert [finding.code for finding in found] == ["GI101"]
    assert found.notes[-1].startswith("The step failed with RuntimeError: ")
    with pytest.raises(ZeroDivisionError) as caught:
        gi.check(fails)
    files = [Path(entry.path).name for entry in caught.traceback]

    assert (files[0], files[-1], set(files[1:-1])) == ("test_checking.py", "test_checking.py", {"checking.py"})


def test_a_step_that_returns_its_loss() -> None:
    """Its backward is run; without a graph there is nothing to check."""
    net = nn.Linear(2, 1)

    assert gi.check(lambda: net(torch.ones(1, 2)), steps=2).num_calls == 2
    with pytest.raises(gi.GradInspectError, match="returns no tensor with a graph"):
        gi.check(lambda: None)
