"""Names of parameters and modules, from models and variables."""

import pytest
import torch
from torch import nn

from gradinspect.recording.names.names import (
    DeletedModel,
    LeafName,
    Member,
    Names,
    all_parameters,
    collect_names,
    members_of,
    module_paths,
    named_modules,
    unwrapped_module,
)
from gradinspect.recording.names.variables import Variable
from gradinspect.recording.values.storages import storage_key


class Net(nn.Module):
    """A parameter and a buffer of its own, and two layers of which one is there twice."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(2))
        self.register_buffer("mean", torch.zeros(2))
        self.register_buffer("none", None)
        self.first = nn.Linear(2, 2, bias=False)
        self.again = self.first
        self.block = nn.Sequential(nn.Linear(2, 2), nn.ReLU())


class DataParallel(nn.Module):
    """Stands for torch's wrapper of this name."""

    def __init__(self, module: nn.Module | None) -> None:
        super().__init__()
        self.module = module


def leaves_of(*models: nn.Module) -> list[torch.Tensor]:
    """Return the parameters of some models."""
    return [parameter for model in models for parameter in model.parameters()]


def named(names: Names, leaves: list[torch.Tensor]) -> list[str | None]:
    """Return the names of some leaves."""
    return [names.of_leaf(leaf).name for leaf in leaves]


def test_the_members_of_a_model() -> None:
    """Parameters and buffers by submodule, the outermost first; a layer that has two places counts once."""
    found = [(member.kind, member.path) for member in members_of(Net()) if member.tensor is not None]

    assert found == [
        ("parameter", "scale"), ("buffer", "mean"), ("parameter", "first.weight"), ("parameter", "block.0.weight"),
        ("parameter", "block.0.bias"),
    ]  # fmt: skip


def test_the_modules_of_a_model() -> None:
    """Each once, under its first path, outer ones first."""
    net = Net()

    assert [path for path, _ in named_modules(net)] == ["", "first", "block", "block.0", "block.1"]
    assert len(list(all_parameters(net))) == 4


def test_a_wrapper_is_no_part_of_a_path_unless_torch_asks_for_it() -> None:
    """Paths as the user knows them, and paths for `get_submodule`."""
    outer = nn.Sequential(nn.Sequential())
    outer[0].add_module("_orig_mod", nn.Linear(1, 1))

    assert [path for path, _ in named_modules(outer)] == ["", "0", "0"]
    assert [path for path, _ in module_paths(outer)] == ["", "0", "0._orig_mod"]


def test_the_users_model_is_inside_its_wrappers() -> None:
    """However many there are; one that wraps nothing is itself."""
    net, empty = Net(), DataParallel(None)

    assert unwrapped_module(DataParallel(DataParallel(net))) is net
    assert unwrapped_module(net) is net
    assert unwrapped_module(empty) is empty


def test_the_only_model_has_no_prefix() -> None:
    """Its paths are those of its state_dict, and its variable is its name; memory has the names too."""
    net = Net()
    names = collect_names(leaves_of(net), [net], [Variable("vae", net)])

    assert named(names, leaves_of(net)) == ["scale", "first.weight", "block.0.weight", "block.0.bias"]
    assert names.model_name == "vae"
    assert names.module_paths[id(net.block[0])] == "block.0"
    assert names.storages[storage_key(net.mean) or 0] == ("buffer", "mean")
    assert names.storages[storage_key(net.scale) or 0] == ("parameter", "scale")
    assert collect_names(leaves_of(net), [net], []).model_name == "model"


def test_of_several_models_each_has_its_variable_for_a_prefix() -> None:
    """Also where the graph reaches only one of them; without a variable, its class, numbered if there are two."""
    first, second, third = nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False), nn.ReLU()
    by_variable = collect_names([first.weight], [first], [Variable("G", first), Variable("D", second)])
    by_class = collect_names(leaves_of(first, second), [first, second], [])
    beside = collect_names([first.weight], [first, third], [])

    assert named(by_variable, leaves_of(first, second)) == ["G.weight", "D.weight"]
    assert named(by_class, leaves_of(first, second)) == ["Linear.weight", "Linear#2.weight"]
    assert named(beside, [first.weight]) == ["weight"]  # the other has no parameters
    assert beside.module_paths[id(third)] == "ReLU"


def test_a_part_of_a_model_is_not_a_model_of_its_own() -> None:
    """Nor is its wrapper; the model is named by a variable that holds either."""
    net = Net()
    names = collect_names(
        leaves_of(net), [net.block, net], [Variable("part", net.block), Variable("net", DataParallel(net))]
    )

    assert named(names, leaves_of(net))[0] == "scale"
    assert names.model_name == "net"


def test_the_model_that_owns_most_of_the_parameters_names_them() -> None:
    """As few models as cover the graph; what another one shares is an alias."""
    small = nn.Linear(2, 2, bias=False)
    large = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2))
    large[0].weight = small.weight
    names = collect_names(leaves_of(large), [small, large], [])

    assert names.of_leaf(small.weight) == LeafName("Sequential.0.weight", "parameter", ("Linear.weight",))


def test_variables_name_what_no_model_has() -> None:
    """The first one that holds it; a tensor that was computed is no leaf."""
    net, x = nn.Linear(1, 1, bias=False), torch.ones(1, requires_grad=True)
    variables = [Variable("x", x), Variable("y", x), Variable("w", net.weight), Variable("z", x * 2)]
    names = collect_names([x, net.weight], [net], variables)

    assert names.of_leaf(x) == LeafName("x", "variable")
    assert names.of_leaf(net.weight) == LeafName("weight", "parameter")
    assert names.storages[storage_key(x) or 0] == ("input", "x")
    assert names.of_leaf(torch.ones(1)) == LeafName(None, "variable")
    assert names.of_leaf(nn.Parameter(torch.ones(1))) == LeafName(None, "parameter")


def test_a_model_that_is_gone_names_what_is_left_of_it() -> None:
    """Alone without a prefix, else with its class; its calls have their paths."""
    weight, other = nn.Parameter(torch.ones(1)), nn.Linear(1, 1, bias=False)
    gone = DeletedModel(
        "Net", [Member("parameter", "fc.weight", weight), Member("buffer", "b", None)], {3: "fc", 0: ""}
    )
    alone = collect_names([weight], [], [], [gone])
    beside = collect_names([weight, other.weight], [other], [], [gone])
    twice = collect_names([weight], [], [], [gone, gone._replace(members=())])

    assert (named(alone, [weight]), alone.gone_paths) == (["fc.weight"], {3: "fc", 0: ""})
    assert named(beside, [weight, other.weight]) == ["Net.fc.weight", "Linear.weight"]
    assert beside.gone_paths == {3: "Net.fc", 0: "Net"}
    assert named(twice, [weight]) == ["fc.weight"]


def test_models_that_only_the_collector_knows_are_numbered_as_the_graph_reaches_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In whatever order it lists them."""
    models = [nn.Sequential(nn.Linear(2, 2)) for _ in range(3)]
    leaves = leaves_of(models[1], models[0], models[2])
    found = []
    for order in (models, models[::-1]):
        monkeypatch.setattr("gradinspect.recording.names.names.instances_of", lambda _root, order=order: list(order))
        found.append(named(collect_names(leaves, [], []), leaves))

    assert found[0] == found[1]
    assert found[0][::2] == ["Sequential.0.weight", "Sequential#2.0.weight", "Sequential#3.0.weight"]


def test_parameters_of_a_model_that_are_no_leaves_of_the_graph() -> None:
    """Those that require a gradient, each once; not those of a model that has no leaf, nor what is gathered."""
    net, other = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2)), nn.Linear(2, 2)
    net[1].weight = net[0].weight
    net[2].bias.requires_grad_(False)  # a method of torch

    alone = collect_names([net[0].bias], [net], [Variable("net", net)])
    beside = collect_names([net[0].bias], [net, other], [Variable("net", net), Variable("other", other)])
    whole = collect_names(leaves_of(net), [net], [])

    assert alone.unreached == ["0.weight", "1.bias", "2.weight"]
    assert beside.unreached == ["net.0.weight", "net.1.bias", "net.2.weight"]
    assert whole.unreached == []


def test_what_a_flat_parameter_is_made_of_is_not_called_unreached() -> None:
    """FullyShardedDataParallel has both as parameters, and only the flat one is a leaf."""
    net = nn.Linear(2, 2)
    net.register_parameter("_flat_param", nn.Parameter(torch.ones(6)))

    assert collect_names([net._flat_param], [net], []).unreached == []
