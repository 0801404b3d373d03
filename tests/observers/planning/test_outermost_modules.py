"""What a plan calls a module."""

from types import SimpleNamespace

from torch import nn

from gradinspect.analyses.planning.changes import Checkpoint
from gradinspect.observers.planning.outermost_modules import OutermostModules
from gradinspect.recording.threads.threads import NOWHERE


def noted(*modules: nn.Module) -> OutermostModules:
    """Note that modules were called, by the names of the caller's variables."""
    recorder = SimpleNamespace(module_windows=[SimpleNamespace(parent=NOWHERE)])
    found = OutermostModules(recorder)  # type: ignore[arg-type]
    net, critic, bce = (*modules, None, None)[:3]
    for module in modules:
        found.entered(module)
    assert (net, critic, bce)[: len(modules)] == modules
    return found


def test_of_one_model() -> None:
    """The variable stands before an index only, and says what the outermost module is; a loss is no model."""
    modules = nn.Sequential(nn.Linear(2, 2)), nn.MSELoss()
    prefix_of = noted(*modules).prefixes_of(0)

    assert [prefix_of(path) for path in ("", "0", "0.mlp", "h.0")] == ["net.", "net.", "net.", ""]


def test_of_a_compiled_model() -> None:
    """What torch.compile puts around a module is no part of its name, and paths in code keep it."""
    prefix_of = noted(nn.Sequential(nn.Linear(2, 2))).prefixes_of(0)
    paths = ("_orig_mod.0", "_orig_mod.1")
    change = Checkpoint(root=0, paths=paths, class_name="Block", num_alike=6, prefix=prefix_of(paths[0]))

    assert [prefix_of(path) for path in ("_orig_mod", "_orig_mod.0", "_orig_mod.h.0")] == ["net.", "net.", ""]
    assert change.describe("x") == "checkpoint net.0-1 Block x2 of 6"


def test_of_several_models() -> None:
    """Each path begins with its model, as on other screens."""
    modules = nn.Linear(2, 2), nn.Linear(2, 2)
    found = noted(*modules)

    assert [found.prefixes_of(number)("h.0") for number in (0, 1)] == ["net.", "critic."]
