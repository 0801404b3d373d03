"""The assertions for test suites, and the plugin of pytest."""

import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import gradinspect as gi
from gradinspect.testing import assert_graph_matches, assert_no_findings, assert_saved_below, assert_trains

IS_INSTALLED = any(entry.value == "gradinspect.pytest_plugin" for entry in entry_points(group="pytest11"))
PLUGIN = () if IS_INSTALLED else ("-p", "gradinspect.pytest_plugin")


def training(*, clears: bool = True, uses_all: bool = True, scale: float = 1.0) -> Callable[[], None]:
    """Return a step of a model with two layers."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def step() -> None:
        if clears:
            optimizer.zero_grad()
        hidden = net[0](torch.ones(3, 4))
        output = net[1](hidden) if uses_all else net[1](hidden.detach())
        (output * scale).square().mean().backward()
        optimizer.step()

    return step


def test_a_step_that_trains() -> None:
    """Neither assertion fails; gradients that are cleared at the end count too."""
    assert_trains(training())
    assert_no_findings(training())


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-12, 1e-16, 1e8])
def test_a_step_with_tiny_or_huge_gradients_trains(scale: float) -> None:
    """Gradients of 1e-32 are not zero, though the squares of their elements are; no norm of 1e25 is infinite."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 1))

    def step() -> None:
        net.zero_grad()
        (net(torch.ones(3, 4)) * scale).square().mean().backward()

    assert_trains(step)


def test_a_gradient_that_was_not_measured_is_no_mistake() -> None:
    """It is warned of, with the reason; a parameter without elements has nothing to learn."""
    net = nn.Sequential(nn.Linear(4, 8, device="meta"), nn.Linear(8, 1, device="meta"))
    net.register_parameter("empty", nn.Parameter(torch.empty(0, 3)))
    with pytest.warns(UserWarning, match=r"Whether 0\.weight.* learns is not known.*on the meta device"):
        assert_trains(lambda: net(torch.ones(3, 4, device="meta")).sum().backward(), steps=2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mistakes", "names"),
    [
        ({"uses_all": False}, "net.0.weight, net.0.bias"),
        ({"scale": 0.0}, "net.0.weight, net.0.bias, net.1.weight"),
        ({"scale": float("nan")}, "net.0.weight, net.0.bias"),
    ],
)
def test_a_parameter_that_does_not_learn(mistakes: dict[str, Any], names: str) -> None:
    """It is not reached, or its gradient is zero or NaN; the failure shows the report."""
    with pytest.raises(AssertionError, match=f"No finite gradient other than zero reaches {names}") as caught:
        assert_trains(training(**mistakes))

    assert "GI" in str(caught.value)
    assert " of step" in str(caught.value)


@pytest.mark.slow
def test_findings_fail() -> None:
    """Those that are asked for, with the whole report."""
    with pytest.raises(AssertionError, match=r"(?s)^GI362  .*do  .*1 finding in"):
        assert_no_findings(training(clears=False))
    assert_no_findings(training(clears=False), only=["GI1"])
    assert_no_findings(training(clears=False), skip=["GI362"])


def test_what_is_held_has_a_limit() -> None:
    """In bytes or as a text; a failure says what holds most, also for a recorded graph."""
    net = nn.Sequential(nn.Linear(16, 16), nn.ReLU())
    with gi.record(net) as recording:
        loss = net(torch.ones(8, 16)).sum()

    assert_saved_below(loss, "64 KiB")
    with pytest.raises(AssertionError, match=r"(?s)1\.0 KiB are held for backward, more than 100 B\..*AddmmBackward0"):
        assert_saved_below(loss, 100)
    with pytest.raises(AssertionError, match=r"net  Sequential"):
        assert_saved_below(recording.capture(loss), 100)
    with pytest.raises(gi.GradInspectError, match="'much' is not a valid size"):
        assert_saved_below(loss, "much")


def test_a_graph_is_compared_with_a_golden_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written when asked, equal then for other values, and different for another operator."""
    net, golden = nn.Linear(2, 2), tmp_path / "golden.json"
    with pytest.raises(AssertionError, match=r"does not exist\. Write it: pytest --gradinspect-update"):
        assert_graph_matches(net(torch.ones(1, 2)).sum(), golden)
    monkeypatch.setenv("GRADINSPECT_UPDATE", "1")
    assert_graph_matches(net(torch.ones(1, 2)).sum(), golden)
    monkeypatch.delenv("GRADINSPECT_UPDATE")

    assert_graph_matches(net(torch.zeros(1, 2)).sum(), golden)
    with pytest.raises(AssertionError, match=r"(?s)SumBackward0.*MeanBackward0"):
        assert_graph_matches(net(torch.ones(1, 2)).mean(), golden)
    with pytest.raises(AssertionError, match=r"f32\[3, 2\]"):
        assert_graph_matches(net(torch.ones(3, 2)).sum(), golden)


@pytest.mark.slow
def test_a_test_suite_as_a_user_writes_it(tmp_path: Path) -> None:
    """The fixture, the option and a failure, each in a worker of xdist."""
    (tmp_path / "test_model.py").write_text("""
import torch
from gradinspect.testing import assert_graph_matches, assert_trains

def test_recorded(gradinspect_recording):
    net = torch.nn.Linear(2, 1)
    loss = net(torch.ones(1, 2)).sum()
    loss.backward()
    (found,) = gradinspect_recording.graph.find("AddmmBackward0")
    assert found.module == "net" and found.line == "test_model.py:7"
    assert gradinspect_recording.graph.source == "test_recorded"

def test_golden():
    assert_graph_matches(torch.nn.Linear(2, 1)(torch.ones(1, 2)).sum(), "golden.json")

def test_dead():
    net = torch.nn.Linear(2, 1)
    assert_trains(lambda: net(torch.ones(1, 2)).sum() * 0)
""")

    def run(*words: str) -> str:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *PLUGIN, *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, cwd=tmp_path)
        return done.stdout + done.stderr

    updated, again = run("-n", "1", "--gradinspect-update", "-k", "golden"), run("-n", "1")

    assert "1 passed" in updated
    assert (tmp_path / "golden.json").is_file()
    assert "1 failed, 2 passed" in again
    assert "No finite gradient other than zero reaches net.weight, net.bias." in again
    assert "gradinspect/api" not in again


def test_an_unused_plugin_costs_nothing() -> None:
    """It loads neither torch nor anything else of ours."""
    program = (
        "import sys, gradinspect.pytest_plugin, gradinspect\n"
        "print(sorted(name for name in sys.modules if name.startswith(('gradinspect', 'torch', 'msgspec'))))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=300)

    assert (
        done.stdout
        == "['gradinspect', 'gradinspect.methods', 'gradinspect.own_builtins', 'gradinspect.pytest_plugin']\n"
    ), done.stderr
