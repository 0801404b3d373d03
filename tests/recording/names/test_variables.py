"""The user's names: stable ones first."""

import builtins
import sys
from pathlib import Path
from typing import Any, NamedTuple
from weakref import ref

import pytest
import torch
from runs import gradinspect
from strange_objects import OBJECTS
from torch import nn

from gradinspect.recording.names.variables import (
    LARGEST_CONTAINER,
    Variable,
    elements_of,
    local_variables,
    loop_targets,
    named_model,
    num_unlisted,
    variables_from,
    variables_in,
)
from gradinspect.storage import read_graph
from gradinspect.torch_api.patching.classes import is_one_of

GLOBAL = torch.ones(1)
GAN = """
import torch
from torch import nn
G = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
D = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
fake = G(torch.randn(5, 2))
D(fake.detach()).mean().backward()
(-D(fake).mean()).backward()
"""
HELPER = """
import torch
from torch import nn
class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(2, 3)
    def forward(self, x):
        return self.encoder(x)
def train(m):
    m(torch.randn(4, 2)).sum().backward()
def main():
    vae = VAE()
    train(vae)
main()
"""
LISTED = """
import torch
first = torch.randn(3, 3, requires_grad=True)
params = [torch.randn(3, 3, requires_grad=True) for _ in range(2)]
x = first
for index, p in enumerate(params):
    x = x @ p
x.sum().backward()
"""


def leaves(text: str, folder: Path, *options: str) -> tuple[set[str], str]:
    """Return the names of the leaves, and the name of the outermost module."""
    (folder / "train.py").write_text(text)
    done = gradinspect("trace", "train.py", "-o", "run.json", "--force", *options, cwd=folder)
    assert done.returncode == 0, done.stderr
    graph = read_graph(folder / "run.json")
    return {str(node.leaf.name) for node in graph.nodes if node.leaf is not None}, done.stdout


def test_names_are_the_same_at_every_backward(tmp_path: Path) -> None:
    """Where two models are in view, each has its variable as a prefix, also where the graph reaches only one."""
    first, _ = leaves(GAN, tmp_path)
    second, _ = leaves(GAN, tmp_path, "--backward", "2")

    assert first == {"D.0.weight", "D.0.bias", "D.1.weight", "D.1.bias"}
    assert second == first | {"G.0.weight", "G.0.bias"}


def test_the_outermost_variable_names_a_model(tmp_path: Path) -> None:
    """Not the argument of a helper, and not a word of ours; the paths are those of the state_dict."""
    names, printed = leaves(HELPER, tmp_path)

    assert names == {"encoder.weight", "encoder.bias"}
    assert "  vae  VAE  2 nodes" in printed


def test_a_loop_variable_is_the_last_resort(tmp_path: Path) -> None:
    """It names another tensor in each iteration; the list has a name for each."""
    assert leaves(LISTED, tmp_path)[0] == {"first", "params[0]", "params[1]"}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("for a in b: c = a", {"a"}),
        ("for a, (b, *c) in d: e = 1", {"a", "b", "c"}),
        ("for a in b:\n for c in a: d = c", {"a", "c"}),
        ("a = b\nwhile a: c = a", set()),
        ("def f():\n for a in b: pass", set()),
    ],
)
def test_what_a_for_loop_assigns(text: str, names: set[str]) -> None:
    """Each target, nested ones too, of this code and no other."""
    assert loop_targets(compile(text, "train.py", "exec")) == names


class Holder:
    """Has tensors as attributes, and code that must not run."""

    def __init__(self) -> None:
        self.weight = torch.ones(1)
        self.parts = [torch.ones(1), "text"]
        self.text = "text"

    @property
    def made(self) -> torch.Tensor:
        """Fail."""
        raise AssertionError


class Liar:
    """Says that it is a tensor."""

    @property  # type: ignore[misc]  # lazy objects do this
    def __class__(self) -> type:
        """Fail."""
        raise AssertionError


def names_in(namespace: dict[str, object], passing: tuple[str, ...] = ()) -> list[str]:
    """Return the names of what is found in a namespace."""
    return [variable.name for variable in variables_in(namespace, passing)]


def test_the_variables_of_a_namespace() -> None:
    """Direct ones first, then those in containers and in `self`; those of a loop last; no code of theirs runs."""
    x, net = torch.ones(1), nn.ReLU()
    namespace: dict[str, object] = {
        "p": x, "pair": (x, 1), "nets": [net, [net]], "by": {"a": x, 2: net, (1,): x, "b": "text"}, "self": Holder(),
        "other": Holder(), "liar": Liar(), "net": net, "number": 3, "unordered": {1, 2},
    }  # fmt: skip

    assert names_in(namespace) == [
        "p", "net", "pair[0]", "nets[0]", "by['a']", "by[2]", "self.weight", "self.parts[0]",
    ]  # fmt: skip
    assert names_in(namespace, ("p",)) == [
        "net", "pair[0]", "nets[0]", "by['a']", "by[2]", "self.weight", "self.parts[0]", "p",
    ]  # fmt: skip
    assert names_in({"self": 3}) == []


def test_of_a_long_container_the_first_elements_are_read() -> None:
    """A program may keep a million."""
    x = torch.ones(1)

    assert len(names_in({"many": [x] * (LARGEST_CONTAINER + 5)})) == LARGEST_CONTAINER
    assert len(names_in({"many": dict.fromkeys(range(LARGEST_CONTAINER + 5), x)})) == LARGEST_CONTAINER


def test_what_a_named_tuple_holds_is_called_by_its_field() -> None:
    """Of a class that derives from it, too, whose own code does not run."""

    class Batch(NamedTuple):
        x: torch.Tensor
        number: int

    class Loud(Batch):
        def __iter__(self) -> Any:
            raise AssertionError

    x = torch.ones(1)

    assert names_in({"batch": Batch(x, 1)}) == ["batch.x"]
    assert names_in({"batch": Loud(x, 1)}) == ["batch.x"]


def test_a_function_finds_its_own_variables_and_those_of_its_callers() -> None:
    """The innermost first, or the globals first, whose names are the same at every call."""

    def inner() -> tuple[list[str], list[str]]:
        near = torch.ones(1)
        frame = sys._getframe()
        found = [one.name for one in variables_from(frame) if one.name in {"near", "far", "GLOBAL"}]
        first = [one.name for one in variables_from(frame, outermost_first=True) if one.name in found]
        return found[: 3 * near.numel()], first[:3]

    def outer() -> tuple[list[str], list[str]]:
        far = torch.ones(1)
        return inner() if far.numel() else ([], [])

    assert outer() == (["near", "far", "GLOBAL"], ["GLOBAL", "far", "near"])


def test_reading_the_variables_of_a_function_keeps_nothing_alive() -> None:
    """Not even the frame has a copy of them afterwards; a function that asks for its locals itself is left alone."""

    def plain() -> tuple[list[str], bool]:
        tensor = torch.ones(1)
        kept = ref(tensor)
        found = list(local_variables(sys._getframe()))
        del tensor
        return found, kept() is None

    def asks() -> tuple[dict[str, object], dict[str, object]]:
        tensor = torch.ones(1)
        mine = locals()
        return local_variables(sys._getframe()), mine if tensor.numel() else {}

    def read() -> tuple[dict[str, object], dict[str, object]]:
        return asks()

    assert plain() == (["tensor", "kept"], True)
    read_by_us, read_by_itself = read()
    assert read_by_us == {}
    assert "tensor" in read_by_itself


def test_a_method_of_that_name_asks_for_no_locals() -> None:
    """A function that puts a model into eval mode is read as any other is."""

    def evaluates(net: nn.Module) -> list[str]:
        net.eval()
        return list(local_variables(sys._getframe()))

    def asks_builtins(net: nn.Module) -> list[str]:
        mine = builtins.locals()
        return list(local_variables(sys._getframe())) if net in mine.values() else []

    assert evaluates(nn.ReLU()) == ["net"]
    assert asks_builtins(nn.ReLU()) == (["net", "mine"] if sys.version_info >= (3, 13) else [])


def test_a_model_that_is_given_has_the_name_of_its_variable() -> None:
    """Or else `model`; without one, nothing is named."""

    def look(net: nn.Module) -> tuple[tuple[Variable, ...], ...]:
        frame = sys._getframe()
        return named_model(net, frame), named_model(nn.ReLU(), frame), named_model(None, frame)

    given = nn.Tanh()

    def run() -> tuple[tuple[Variable, ...], ...]:
        return look(given)

    (own,), (other,), none = run()
    assert (own.name, own.value) == ("net", given)
    assert other.name == "model"
    assert none == ()


def test_elements_are_those_of_the_base_class() -> None:
    """Of lists, tuples, sets, and of dicts that are no subclass, which have an order and views of their own."""
    assert elements_of(OBJECTS["BadList"]([1, 2])) == [1, 2]
    assert elements_of({"a": 1}) == elements_of((1,)) == elements_of({1}) == elements_of(frozenset((1,))) == [1]
    assert elements_of(OBJECTS["BadDict"](a=1)) == elements_of("ab") == elements_of(OBJECTS["Bad"]()) == []


def test_a_class_is_compared_by_identity() -> None:
    """That of a metaclass with an `==` of its own, too; a subclass is another one."""
    bad = OBJECTS["Bad"]()

    assert is_one_of(bad, (list, OBJECTS["Bad"]))
    assert not is_one_of(bad, (list, dict))
    assert not is_one_of(True, (int,))


def test_what_is_too_far_back_in_a_list_is_counted() -> None:
    """Parameters and modules, also of `self`; a long list of examples is not walked through."""

    class Holder:
        """Has many parameters."""

        def __init__(self) -> None:
            self.table = dict.fromkeys(range(LARGEST_CONTAINER + 3), weight)

    weight, example = torch.zeros(1, requires_grad=True), torch.zeros(1)
    examples = [example] * (LARGEST_CONTAINER + 5)
    parameters = [*examples, weight, nn.Linear(1, 1)]

    assert num_unlisted({"few": [weight], "data": examples, "number": 3}) == 0
    assert num_unlisted({"many": parameters, "pair": tuple(parameters)}) == 4
    assert num_unlisted({"self": Holder()}) == 3
