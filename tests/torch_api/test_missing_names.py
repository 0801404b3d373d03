"""A torch that lacks a private name: what the name gave is left out and said, and everything else is right."""

import importlib
import pkgutil
import random
from functools import cache
from pathlib import Path

import pytest
from runs import gradinspect
from turns import one_in

from gradinspect import torch_api
from gradinspect.graph import Graph, Node
from gradinspect.storage import read_graph
from gradinspect.torch_api.probes import Private, declared

PROGRAM = """
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    x = torch.randn(16, 4)
    hidden = checkpoint(model, x, use_reentrant=False)
    hidden.grad_fn.register_prehook(lambda grads: None)
    loss = Double.apply(torch.cat([hidden.exp(), hidden * hidden])).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
VERBS = (
    ("trace", "--create-graph"),
    ("trace", "--at", "end"),
    ("saved",),
    ("memory",),
    ("memory", "--iterations", "2"),
    ("memory", "--fake"),
    ("fit",),
    ("fit", "--real"),
    ("plan", "--fit", "1GiB"),
    ("grads",),
    ("grads", "--steps", "2"),
    ("grads", "--timeline", "backward.json"),
    ("step", "--script", "go"),
    ("check",),
    ("check", "--steps", "2", "--gradcheck"),
)
for module in pkgutil.walk_packages(torch_api.__path__, f"{torch_api.__name__}."):
    importlib.import_module(module.name)  # declares its names
NAMES = [name.path for name in declared()]


def has_one_sentence_of(names: tuple[str, ...], text: str) -> bool:
    """Tell whether a text says of one of the names that it is missing, and who has it."""
    flat = " ".join(text.split())
    return any(f"has no '{name}'" in flat for name in names) and "has it" in flat


def without(absent: tuple[str, ...], folder: Path, *verb: str) -> tuple[int, str, str]:
    """Run a verb on the program with a torch that lacks some names."""
    (folder / "train.py").write_text(PROGRAM)
    (folder / "go").write_text("continue\n")
    done = gradinspect(verb[0], "train.py", *verb[1:], cwd=folder, absent=absent)
    return done.returncode, done.stdout, done.stderr


@cache
def whole_graph(folder: Path) -> Graph:
    """Record the program with everything there."""
    status, _, errors = without((), folder, "export", "-o", "whole.json")

    assert status == 0, errors
    return read_graph(folder / "whole.json")


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """The record of the program with everything there."""
    return whole_graph(tmp_path_factory.mktemp("whole"))


def facts_of(node: Node) -> dict[str, object]:
    """List what a record says of a node and what may be missing from it."""
    saved = {
        (value.name, value.index): (
            value.kind,
            value.value,
            value.tensor and (value.tensor.info, value.tensor.num_bytes),
        )
        for value in node.saved
        if value.status != "unreadable"
    }
    return {
        "name": node.name,
        "function": node.function,
        "outputs": tuple(info for info in node.forward_outputs if info is not None),
        "leaf": node.leaf and (node.leaf.name, node.leaf.info),
        "module": node.module is not None,
        "frame": node.frame is not None,
        "hooks": tuple(hook.name for hook in node.hooks),
        **{str(key): value for key, value in saved.items()},
    }


def check_graph(part: Graph, whole: Graph, absent: tuple[str, ...]) -> None:
    """Nothing is said that the whole record does not say; what is not said is explained."""
    names = sorted(node.name for node in whole.nodes)

    assert sorted(node.name for node in part.nodes) == names
    left = [facts_of(node) for node in whole.nodes]
    is_less = False
    for facts in map(facts_of, part.nodes):
        alike = [other for other in left if agrees(facts, other)]
        assert alike, facts
        left.remove(alike[0])
        is_less |= facts != alike[0]
    total = sum(storage.num_bytes for storage in part.storages)
    of_whole = sum(storage.num_bytes for storage in whole.storages)
    assert total <= of_whole
    if is_less or total < of_whole:
        assert has_one_sentence_of(absent, "\n".join(part.warnings)), part.warnings


def agrees(facts: dict[str, object], whole: dict[str, object]) -> bool:
    """Tell whether each fact is the one of the whole record, or a missing one."""
    return all(not value or whole.get(name, value) == value for name, value in facts.items())


def check_export(absent: tuple[str, ...], folder: Path, whole: Graph) -> None:
    """Record with names missing, and compare."""
    status, _, errors = without(absent, folder, "export", "-o", "part.json")

    if status == 2:
        assert has_one_sentence_of(absent, errors), errors
        assert len(errors.splitlines()) == 1
        return
    assert (status, errors) == (0, "Wrote part.json\n")
    check_graph(read_graph(folder / "part.json"), whole, absent)


def check_verb(absent: tuple[str, ...], folder: Path, verb: tuple[str, ...]) -> None:
    """Run a verb: it ends as it should, or says in one sentence what is missing."""
    status, output, errors = without(absent, folder, *verb)

    assert "Traceback" not in output + errors, errors
    assert status in (0, 2), errors
    if status == 2:
        assert has_one_sentence_of(absent, errors), errors
    if verb[0] == "check" and status == 0:
        assert "No problems found" in output


@pytest.mark.slow
def test_a_name_is_really_taken_away(tmp_path: Path) -> None:
    """Or the tests below would prove nothing."""
    name = "torch._C._autograd._get_sequence_nr"
    status, _, _ = without((name,), tmp_path, "export", "-o", "part.json")
    part = read_graph(tmp_path / "part.json")

    assert status == 0
    assert all(node.frame is None and node.module is None for node in part.nodes)
    assert has_one_sentence_of((name,), "\n".join(part.warnings))


@pytest.mark.slow
@pytest.mark.parametrize("path", one_in(8, NAMES))
def test_a_record_without_one_name_says_less_and_nothing_wrong(path: str, graph: Graph, tmp_path: Path) -> None:
    """Each fact is that of the whole record or missing, and one sentence says why."""
    check_export((path,), tmp_path, graph)


@pytest.mark.slow
@pytest.mark.parametrize("path", one_in(8, NAMES, first=1))
def test_a_verb_without_one_name_never_ends_in_a_traceback(path: str, tmp_path: Path) -> None:
    """One verb for every eighth name; all of them in the sweep."""
    check_verb((path,), tmp_path, VERBS[NAMES.index(path) % len(VERBS)])


@pytest.mark.sweep
@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
@pytest.mark.parametrize("path", NAMES)
def test_every_verb_without_every_name(path: str, verb: tuple[str, ...], tmp_path: Path) -> None:
    """The whole of it."""
    check_verb((path,), tmp_path, verb)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.sweep) for seed in range(8, 200))])
def test_several_names_at_once(seed: int, graph: Graph, tmp_path: Path) -> None:
    """Whatever else is gone, no verb fails and no record is wrong."""
    draw = random.Random(seed)  # noqa: S311  # the same on every run
    absent = tuple(draw.sample(NAMES, draw.randint(2, 8)))
    check_export(absent, tmp_path, graph)
    check_verb(absent, tmp_path, VERBS[seed % len(VERBS)])


def test_a_sentence_names_the_torch_that_has_it() -> None:
    """What is missing, what that takes away, and which torch to take."""
    name = Private(
        path="torch._gone", gives="nothing is shown", versions="2.8 to 2.15", value=None,
        is_essential=False, only_for=None, is_rare=False,
    )  # fmt: skip

    assert "has no 'torch._gone', so nothing is shown (torch 2.8 to 2.15 has it)." in name.sentence
