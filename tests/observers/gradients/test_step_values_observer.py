"""What the values of a step are called in every run."""

import pytest
from torch import nn

from gradinspect.observers.gradients import step_values_observer


def test_a_shared_module_has_one_path_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules are found in another order in each run; the shortest path counts, then the first."""
    shared, deep = nn.BatchNorm1d(2), nn.Identity()
    layers = nn.Sequential(nn.Sequential(shared, nn.Sequential(deep)), nn.Sequential(shared, deep))
    modules = list(layers.modules())
    found = []
    for order in (modules, modules[::-1]):
        monkeypatch.setattr(step_values_observer, "instances_of", lambda _, order=order: order)
        found.append({id(module): path for path, module in step_values_observer._modules()})

    assert found[0] == found[1]
    assert (found[0][id(shared)], found[0][id(deep)], found[0][id(layers)]) == ("0.0", "1.1", "")
