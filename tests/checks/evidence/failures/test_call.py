"""The call of torch that ended a program, and the tensors of its statement."""

import copy
import math
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from threading import Lock
from typing import Any

import pytest
import torch
from torch import nn

from gradinspect.checks.evidence.failures.call import _named, _steps, _values, failed_call
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.failures import FailedCall
from gradinspect.recording.recorder import Recorder


def _error_of(function: Callable[[], object]) -> Exception:
    try:
        function()
    except Exception as error:
        return error
    raise AssertionError


def _failed(function: Callable[[], object], tmp_path: Path) -> FailedCall | None:
    recorder = Recorder()
    return failed_call(_error_of(function), Dataflow(recorder), recorder, tmp_path)


def test_the_tensors_of_the_statement_are_listed(tmp_path: Path) -> None:
    """Those of variables, and the first parameter of a module."""

    class Holder:
        def __init__(self) -> None:
            self.fc = nn.Linear(4, 2)

    holder, x = Holder(), torch.zeros(3, 5)
    found = _failed(lambda: holder.fc(x), tmp_path)
    assert found is not None
    assert {one.name: (one.shape, one.is_trained_leaf) for one in found.tensors} == {
        "holder.fc.weight": ((2, 4), True),
        "x": ((3, 5), False),
    }
    assert "mat1 and mat2 shapes cannot be multiplied" in found.error


def test_integers_are_known(tmp_path: Path) -> None:
    """They cannot hold what a loss computes."""
    out, labels = torch.zeros(3), torch.zeros(3, dtype=torch.long)
    found = _failed(lambda: nn.functional.binary_cross_entropy_with_logits(out, labels), tmp_path)
    assert found is not None
    assert {one.name: one.is_integer for one in found.tensors} == {"out": False, "labels": True}


y = torch.zeros(7)  # of the module, where the functions below have a `y` of their own


def test_what_a_statement_makes_is_not_among_its_tensors(tmp_path: Path) -> None:
    """It failed, so what stands under that name is of an earlier line, or of somewhere else."""
    x, w = torch.zeros(3, 5), torch.zeros(4, 2)

    def product() -> None:
        y = x @ w
        y.sum()

    def later() -> torch.Tensor:
        print(y)  # type: ignore[used-before-def]  # noqa: F823  # what the test is about
        y = x
        return y  # noqa: RET504  # as above

    def added() -> None:
        total = torch.zeros(2)
        total += x

    product_of, added_to = _failed(product, tmp_path), _failed(added, tmp_path)
    assert product_of is not None
    assert added_to is not None
    assert sorted(one.name for one in product_of.tensors) == ["w", "x"]
    assert sorted(one.name for one in added_to.tensors) == ["total", "x"]
    last = list(_steps(_error_of(later).__traceback__))[-1]
    assert isinstance(last.tb_frame.f_globals["y"], torch.Tensor)
    assert dict(_named(_values(last))) == {}


def test_what_the_program_raises_itself_is_its_own(tmp_path: Path) -> None:
    """It says itself what is wrong."""
    x = torch.zeros(3)

    def fails() -> None:
        if x.sum() == 0:
            raise ValueError(f"empty: {x}")

    assert _failed(fails, tmp_path) is None


def test_a_statement_without_tensors_is_of_torch_if_it_names_torch(tmp_path: Path) -> None:
    """Code in C has no frame that says whose it is."""
    found = _failed(lambda: torch.zeros(-1), tmp_path)
    assert found is not None
    assert (found.tensors, found.error) == ((), "zeros: Dimension size must be non-negative")
    assert _failed(lambda: int("x"), tmp_path) is None
    assert _failed(lambda: torch.tensor(math.sqrt(-1)), tmp_path) is None


def test_the_layer_inside_of_a_module_is_named(tmp_path: Path) -> None:
    """With what it was given, and its first parameter; that of a module which the statement names is none."""
    net = nn.ModuleDict({"body": nn.Sequential(nn.Tanh(), nn.Linear(4, 2))})["body"]
    found = _failed(lambda: net(torch.zeros(3, 5)), tmp_path)
    assert found is not None
    assert found.layer == "net.1, a Linear"
    assert {one.name: (one.shape, one.is_argument) for one in found.tensors} == {
        "the input of net.1": ((3, 5), True), "net.1.weight": ((2, 4), False),
    }  # fmt: skip
    layer = net[1]
    alone = _failed(lambda: layer(torch.zeros(3, 5)), tmp_path)
    assert alone is not None
    assert alone.layer == ""


def test_errors_that_code_of_torch_raises_in_python_are_those_of_torch(tmp_path: Path) -> None:
    """Also of kinds that Python raises; a short sentence comes with the next one."""
    layer = nn.Linear(2, 2)

    def assigns() -> None:
        layer.weight = torch.zeros(2, 2)

    found = _failed(assigns, tmp_path)
    assert found is not None
    assert found.error.startswith("cannot assign 'torch.FloatTensor' as parameter 'weight'")
    weight = torch.zeros(2, requires_grad=True)
    read = _failed(lambda: print(weight.numpy()), tmp_path)
    assert read is not None
    assert read.error.endswith("Use tensor.detach().numpy() instead")


def test_a_parameter_in_two_groups_has_all_of_its_names(tmp_path: Path) -> None:
    """Of the variables that the program has."""
    table, head = nn.Embedding(4, 2), nn.Linear(2, 4, bias=False)
    head.weight = table.weight

    def optimizer() -> object:
        named = [table, head]
        return torch.optim.SGD([{"params": one.parameters()} for one in (table, nn.Linear(1, 1), head, *named[:0])])

    found = _failed(optimizer, tmp_path)
    assert found is not None
    assert [(set(one.names), one.groups) for one in found.shared] == [({"table.weight", "head.weight"}, (0, 2))]


def test_lists_of_modules_are_named_where_an_optimizer_gets_nothing(tmp_path: Path) -> None:
    """And dicts; not lists of anything else, nor what the module keeps for itself."""
    net = nn.Module()
    net.layers, net.heads, net.sizes = [nn.Linear(2, 2)], {"a": nn.Linear(2, 2)}, [2, 2]
    found = _failed(lambda: torch.optim.SGD(net.parameters()), tmp_path)
    assert found is not None
    assert found.unregistered == (("net.layers", "ModuleList"), ("net.heads", "ModuleDict"))


def test_errors_of_python_are_not_explained(tmp_path: Path) -> None:
    """A misspelled method is no matter of tensors."""
    x = torch.zeros(3)
    assert _failed(lambda: getattr(x, "no" + "thing"), tmp_path) is None


def test_no_property_of_the_program_runs() -> None:
    """Names are looked up without running the program's code."""

    class Reader:
        @property
        def weight(self) -> torch.Tensor:
            raise AssertionError

    reader, x = Reader(), torch.zeros(3)

    def fails() -> torch.Tensor:
        return x.view(7) if reader else reader.weight

    steps = list(_steps(_error_of(fails).__traceback__))
    assert [name for name, _ in _named(_values(steps[-1]))] == ["x"]


def test_an_optimizer_that_refuses_sparse_gradients_names_their_parameters(tmp_path: Path) -> None:
    """Not the others that it holds."""
    words, layer = nn.Embedding(5, 2, sparse=True), nn.Linear(2, 1)
    optimizer = torch.optim.Adam([*words.parameters(), *layer.parameters()])
    layer(words(torch.tensor([1, 2]))).sum().backward()
    found = _failed(lambda: optimizer.step(), tmp_path)  # noqa: PLW0108  # the statement names it

    assert found is not None
    assert [(one.shape, one.has_sparse_gradient) for one in found.tensors] == [((5, 2), True)]
    assert "does not support sparse gradients" in found.error


def test_an_iterator_that_an_earlier_line_has_read(tmp_path: Path) -> None:
    """A list, and an iterator that nothing has read, tell nothing."""
    net = nn.Linear(2, 2)

    def counted() -> object:
        params = net.parameters()
        print(len(list(params)))
        return torch.optim.SGD(params)

    def unread() -> object:
        params = filter(lambda one: one is None, net.parameters())
        return torch.optim.SGD(params)

    def listed() -> object:
        params = list[torch.Tensor]()
        print(len(params))
        return torch.optim.SGD(params)

    found = _failed(counted, tmp_path)

    assert found is not None
    assert [(one.name, one.value, one.made.code, one.read.code) for one in found.iterators] == [
        ("params", "net.parameters()", "params = net.parameters()", "print(len(list(params)))")
    ]
    others = [_failed(unread, tmp_path), _failed(listed, tmp_path)]
    assert [one.iterators for one in others if one is not None] == [(), ()]


class Kept(nn.Module):
    """A module that keeps a result."""

    def __init__(self) -> None:
        """Compute it."""
        super().__init__()
        self.kept = {"last": nn.Linear(2, 1)(torch.ones(1, 2))}


RESULT, KEPT, LEAF = torch.ones(2, requires_grad=True) * 2, Kept(), torch.ones(2, requires_grad=True)
HISTORY = [RESULT]


COPIES = {
    "result": lambda: copy.deepcopy(RESULT),
    "attribute": lambda: copy.deepcopy(KEPT),
    "element": lambda: copy.deepcopy(HISTORY),
    "dict": lambda: deepcopy(KEPT.kept),
}


@pytest.mark.parametrize(
    ("name", "path"),
    [("result", "RESULT"), ("attribute", "KEPT.kept.last"), ("element", "HISTORY"), ("dict", "KEPT.kept.last")],
)
def test_the_result_that_is_not_copied_is_found_inside(name: str, path: str, tmp_path: Path) -> None:
    """With the attributes and keys by which it is reached."""
    found = _failed(COPIES[name], tmp_path)

    assert found is not None
    assert found.refuses_copy
    assert path in [one.name for one in found.tensors]


def test_what_something_else_refuses_to_copy_is_not_an_error_of_torch(tmp_path: Path) -> None:
    """A lock, for example."""
    lock = Lock()

    assert _failed(lambda: copy.deepcopy(lock), tmp_path) is None


READS: dict[str, Callable[[], object]] = {}  # each is a statement of its own, as its names are read
READS["product"] = lambda: 0.1 * LEAF.grad
READS["method"] = lambda: LEAF.grad.zero_() or 1
READS["data"] = lambda: LEAF.data - LEAF.grad.data
READS["no leaf"] = lambda: RESULT.grad.sum() or 1
READS["no gradient"] = lambda: None + LEAF
READS["no attribute"] = lambda: LEAF.nothing


@pytest.mark.parametrize("name", READS)
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
def test_a_gradient_that_is_none_is_named(name: str, tmp_path: Path) -> None:
    """However the program reads it, and only if it is that of a leaf."""
    found = _failed(READS[name], tmp_path)
    names = None if found is None or not found.lacks_gradient else {one.name for one in found.tensors}

    assert names == ({"LEAF"} if name in {"product", "method", "data"} else None)


def test_errors_of_types_are_those_of_torch_if_they_say_so(tmp_path: Path) -> None:
    """Those that a call in C raises, with no frame of torch."""

    def ragged() -> None:
        torch.tensor([[1, 2], [3]])

    def of_list() -> None:
        nn.functional.linear([1.0], torch.zeros(1, 1))

    def without_number() -> None:
        schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(torch.optim.SGD([torch.zeros(1)]))
        schedule.step()

    says = {ragged: "expected sequence", of_list: "must be Tensor, not list", without_number: "'metrics'"}
    for call, text in says.items():
        found = _failed(call, tmp_path)
        assert found is not None
        assert text in found.text


def test_errors_of_types_that_are_the_programs_own_are_not_reported(tmp_path: Path) -> None:
    """Also where the statement names torch."""
    assert _failed(lambda: len(torch.float32) + 1, tmp_path) is None


def test_the_class_that_a_statement_makes_is_named(tmp_path: Path) -> None:
    """As of a loss that is given its arguments too early."""
    found = _failed(lambda: nn.MSELoss(torch.zeros(3), torch.zeros(3)), tmp_path)
    assert found is not None
    assert found.constructed == "MSELoss"


def test_the_state_of_an_optimizer_that_was_made_in_another_order(tmp_path: Path) -> None:
    """The parameter, its shape, and that of what was loaded for it."""

    def step(layers: list[nn.Linear], state: dict[str, Any] | None) -> torch.optim.Adam:
        optimizer = torch.optim.Adam([one.weight for one in layers])
        if state is not None:
            optimizer.load_state_dict(state)
        (layers[0].weight.sum() + layers[1].weight.sum()).backward()
        optimizer.step()
        return optimizer

    layers = [nn.Linear(3, 4), nn.Linear(4, 2)]
    saved = step(layers, None).state_dict()
    found = _failed(lambda: step(layers[::-1], saved), tmp_path)
    assert found is not None
    assert found.misfit is not None
    assert (found.misfit.shape, found.misfit.state) == ((2, 4), (4, 3))
