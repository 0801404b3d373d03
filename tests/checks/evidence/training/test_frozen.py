"""Parameters that are frozen, by accident or on purpose."""

import runpy
from pathlib import Path

import pytest

from gradinspect.api.live.checking import check_once
from gradinspect.checks.evidence.training import frozen

PROGRAM = """
import copy
import torch
from torch import nn
source = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
source{part}.requires_grad_(False)
model = copy.deepcopy(source)
head = nn.Linear(1, 1)
optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    head(model(torch.randn(5, 4))).square().mean().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("part", "codes"), [("", ["GI379"]), ("[0]", [])])
def test_a_copy_of_a_partly_frozen_model_is_frozen_on_purpose(part: str, codes: list[str], tmp_path: Path) -> None:
    """What is copied with a part that learns was frozen as part of it."""
    script = tmp_path / "train.py"
    script.write_text(PROGRAM.format(part=part))

    found = check_once(lambda: bool(runpy.run_path(str(script), run_name="__main__")), script.name)

    assert found is not None
    assert [finding.code for finding in found.findings] == codes


HELD = """
import torch
from torch import nn
net = nn.Linear(2, 1)
{made}
optimizer = torch.optim.SGD([*net.parameters(), {held}], lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    net(torch.ones(3, 2)).square().mean().backward()
    optimizer.step()
    {then}
"""


@pytest.mark.parametrize(
    ("made", "held", "then", "codes"),
    [
        ("scale = torch.zeros(1)", "scale", "pass", ["GI379"]),
        ("net.scale = torch.zeros(2).to(torch.float64)", "net.scale", "pass", ["GI379"]),
        ("scale = torch.zeros(1)", "scale", "scale.requires_grad = True", ["GI304"]),  # nothing uses it
        ("scale = torch.zeros(1)", "scale", "scale += 1", []),
        ("scale = nn.Parameter(torch.zeros(1), requires_grad=False)", "scale", "pass", []),
        ("scale = torch.zeros(1).requires_grad_(False)", "scale", "pass", []),
        ("count = torch.zeros(1, dtype=torch.int64)", "count", "", []),
        ("scales = [torch.zeros(1)]", "scales[0]", "pass", []),
        ("norm = nn.BatchNorm1d(1)", "norm.running_var", "pass", []),
    ],
)
def test_a_plain_tensor_in_an_optimizer_is_frozen_by_accident(
    made: str, held: str, then: str, codes: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless the program says so, unfreezes it or writes to it."""
    script = tmp_path / "train.py"
    script.write_text(HELD.format(made=made, held=held, then=then))

    assert codes_of(script, monkeypatch) == codes


GROUPS = """
import torch
from torch import nn
words = nn.Embedding.from_pretrained(torch.ones(5, 2){more})
net = nn.Linear(2, 1)
optimizer = torch.optim.SGD({groups}, lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    net(words(torch.arange(3))).square().mean().backward()
    optimizer.step()
"""
OWN = '[{"params": words.parameters(), "lr": 0.01}, {"params": net.parameters()}]'


@pytest.mark.parametrize(
    ("more", "groups", "codes"),
    [
        ("", OWN, ["GI379"]),
        (", padding_idx=0", OWN, ["GI379"]),
        (", freeze=True", OWN, []),
        (", True", OWN, []),
        (", **{}", OWN, []),
        ("", "[*words.parameters(), *net.parameters()]", []),
        ("", '[{"params": [*words.parameters(), net.weight]}, {"params": [net.bias]}]', []),
    ],
)
def test_pretrained_words_with_a_group_of_their_own_are_frozen_by_default(
    more: str, groups: str, codes: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless the call says whether to freeze, or the group has others, too."""
    script = tmp_path / "train.py"
    script.write_text(GROUPS.format(more=more, groups=groups))

    assert codes_of(script, monkeypatch) == codes


def codes_of(script: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Check a program whose only source is its script: this file has the lines of all of them."""
    monkeypatch.setattr(frozen, "own_sources", lambda _text: [str(script)])
    found = check_once(lambda: bool(runpy.run_path(str(script), run_name="__main__")), script.name)
    assert found is not None
    return [finding.code for finding in found.findings]


ADAPTED = """
import torch
from torch import nn
net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
net.back = nn.Parameter({made})
for one in net.parameters():
    one.requires_grad = False
head = nn.Linear(1, 1)
{then}
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
for _ in range({steps}):
    optimizer.zero_grad()
    head(net(torch.randn(5, 4)) + torch.randn(5, 2) @ net.back.view(2, 1)).square().mean().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("made", "then", "steps", "codes"),
    [
        ("torch.zeros(2, 1)", "", 3, ["GI379"]),
        ("torch.zeros(2, 1)", "", 1, []),
        ("torch.ones(2, 1)", "", 3, []),
        ("torch.zeros(2)", "", 3, []),
        ("torch.zeros(2, 1)", "net.back.requires_grad = True", 3, []),
    ],
)
def test_a_frozen_matrix_of_zeros_has_no_effect(
    made: str, then: str, steps: int, codes: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless it learns later; a vector of zeros may be a bias."""
    monkeypatch.setattr(frozen, "_may_unfreeze", lambda _name="": bool(then))
    script = tmp_path / "train.py"
    script.write_text(ADAPTED.format(made=made, then=then, steps=steps))

    found = check_once(lambda: bool(runpy.run_path(str(script), run_name="__main__")), script.name)

    assert found is not None
    assert [finding.code for finding in found.findings] == codes
