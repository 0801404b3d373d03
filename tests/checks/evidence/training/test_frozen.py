"""Parameters that are frozen, by accident or on purpose."""

import runpy
from pathlib import Path

import pytest

from gradinspect.api.live.checking import check_once

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
