"""Whether the program scales its losses."""

import pytest
import torch

from gradinspect.checks.evidence import grad_scaling
from gradinspect.checks.evidence.grad_scaling import is_scaling


@pytest.mark.parametrize(
    ("enabled", "expected"), [([], False), ([False], False), ([True], True), ([False, True, False], True)]
)
def test_only_an_enabled_scaler_scales(monkeypatch: pytest.MonkeyPatch, enabled: list[bool], *, expected: bool) -> None:
    """Among all that there are."""
    scalers = [torch.amp.GradScaler("cpu", enabled=one) for one in enabled]
    monkeypatch.setattr(grad_scaling, "instances_of", lambda _kind: scalers)

    assert is_scaling() == expected
