"""The memory of a step in the caller's process: what was there before counts, and what the step allocates."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from runs import python
from torch import nn

import gradinspect as gi
from gradinspect.analyses.memory.step import bytes_by_kind
from gradinspect.testing import assert_peak_below

SIZE = 256 * 256 * 4  # of one matrix, in bytes


def training(optimizer_class: type[torch.optim.Optimizer]) -> Callable[[], None]:
    """Return a step of one matrix, which was made before."""
    net = nn.Linear(256, 256, bias=False)
    optimizer = optimizer_class(net.parameters(), lr=0.1)
    x = torch.ones(1, 256)

    def step() -> None:
        optimizer.zero_grad()
        net(x).sum().backward()
        optimizer.step()

    return step


def test_optimizers_of_other_models_are_not_waited_for() -> None:
    """They are there in the caller's process, and the step knows nothing of them."""
    other = torch.optim.Adam(nn.Linear(4, 4).parameters())
    found = gi.fit(training(torch.optim.Adam))

    assert other.param_groups
    assert len(found.steps) == 2
    assert not any("An optimizer has not stepped" in note or "not every optimizer" in note for note in found.notes)


@pytest.mark.parametrize(("optimizer_class", "num_states"), [(torch.optim.SGD, 0), (torch.optim.Adam, 2)])
def test_what_was_there_before_counts(optimizer_class: type[torch.optim.Optimizer], num_states: int) -> None:
    """The parameter, and the state that an optimizer has made in an earlier step, by name; rows add up to the peak."""
    found = gi.fit(training(optimizer_class))
    kinds = bytes_by_kind(found)

    assert kinds["parameter"] == kinds["gradient"] == SIZE
    assert kinds.get("optimizer_state", 0) // SIZE == num_states
    assert sum(row.num_bytes for row in found.alive) == found.peak_bytes
    assert {row.name for row in found.alive if row.kind == "parameter"} == {"weight"}
    assert repr(found).startswith("<StepMemory of step: peak ")
    assert "at the peak, by kind" in str(found)


class _Scaled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * 2).sin()


class _Block(nn.Module):
    def __init__(self, activation: nn.Module) -> None:
        super().__init__()
        self.activation, self.fc = activation, nn.Linear(64, 64, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scaled = _Scaled()(x)  # made in forward, so that it has no path
        result: torch.Tensor = self.fc(self.activation(scaled))
        return result


def test_a_block_has_what_its_own_calls_of_a_shared_module_make() -> None:
    """An activation that all blocks share is in the first one by its path, and holds memory for each."""
    activation = nn.GELU()
    net = nn.Sequential(*(_Block(activation) for _ in range(3)))
    x = torch.ones(512, 64, requires_grad=True)
    found = gi.fit(lambda: net(x).sum().backward())
    blocks: dict[str, int] = {}
    for row in found.alive:
        if row.kind == "saved":
            blocks[row.made.module] = blocks.get(row.made.module, 0) + row.num_bytes

    inside = {f"{block}.{part}" for block in range(3) for part in ("_Scaled", "activation")}
    assert inside <= blocks.keys()
    assert len({sum(blocks[f"{block}.{part}"] for part in ("_Scaled", "activation")) for block in (1, 2)}) == 1


def test_a_peak_has_a_limit() -> None:
    """A failure shows what is alive at the peak, and what would have to go."""
    assert_peak_below(training(torch.optim.SGD), "8 MiB")
    with pytest.raises(
        AssertionError, match=r"(?s)^The peak of a step is .*more than 100\.0 KiB.*at the peak, by kind"
    ):
        assert_peak_below(training(torch.optim.SGD), "100 KiB")


def test_a_step_without_a_backward() -> None:
    """One sentence."""
    with pytest.raises(gi.GradInspectError, match="calls no backward"):
        gi.fit(lambda: None)


ELSEWHERE = """
import torch
import gradinspect as gi
with torch.device("cpu"):
    net, x = torch.nn.Linear(64, 64), torch.ones(8, 64)
torch.set_default_device("meta")
def step():
    net.zero_grad()
    net(x).sum().backward()
gi.fit(step)
del net, x, step
"""


@pytest.mark.slow
def test_torch_warns_of_nothing_where_another_device_is_the_default(tmp_path: Path) -> None:
    """Torch's warning of memory from before the profiler is about the CPU."""
    program = tmp_path / "program.py"
    program.write_text(ELSEWHERE)
    done = python(program)

    assert (done.returncode, done.stderr) == (0, "")
