"""Names of a model that is gone when its graph is recorded, and names that are none."""

import gc
import sysconfig
from collections.abc import Callable
from pathlib import Path
from weakref import ref

import pytest
import torch
from runs import gradinspect
from torch import nn

from gradinspect.graph import own_frame
from gradinspect.recording.capture import capture_graph
from gradinspect.recording.names.kept_names import FEW, KeptNames
from gradinspect.recording.recorder import Recorder

DEAD = """
import torch
from torch import nn
class Out:
    def __init__(self, loss): self.loss = loss
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU())
        self.head = nn.Linear(8, 1)
    def forward(self, x): return Out(self.head(self.body(x)).mean())
def build(x):
    model = Net()
    return model(x).loss
"""


@pytest.mark.slow
def test_a_model_that_is_gone_keeps_its_names(tmp_path: Path) -> None:
    """Its parameters and modules are called what they were called during forward."""
    script = tmp_path / "dead.py"
    script.write_text(f"{DEAD}loss = build(torch.randn(5, 4))\nloss.backward()\n")
    done = gradinspect("trace", script)

    assert "model  Net  7 nodes" in done.stdout
    for name in ("head.weight", "head.bias", "body.0.weight", "body.0.bias", "body.1.weight", "body.1.bias"):
        assert f"◆ {name}  " in done.stdout


def test_two_models_that_are_gone_are_told_apart(tmp_path: Path) -> None:
    """Each has its class for a prefix, as living models have."""
    script = tmp_path / "dead.py"
    script.write_text(f"{DEAD}loss = build(torch.randn(5, 4)) + build(torch.randn(5, 4))\nloss.backward()\n")
    done = gradinspect("trace", script, "--full")

    assert "◆ Net.head.weight" in done.stdout
    assert "◆ Net#2.head.weight" in done.stdout


def test_names_keep_no_memory() -> None:
    """Neither the model nor a parameter lives longer because its name is known."""
    with Recorder() as recorder:
        model = nn.Linear(3, 3)
        model(torch.ones(1, 3))
        parts = [ref(model), ref(model.weight)]
        del model
        gc.collect()

        assert [part() for part in parts] == [None, None]
        assert [list(gone.members) for gone in recorder.kept_names.gone()] == [[]]


def test_endless_models_are_forgotten() -> None:
    """A program that makes a model for each step does not fill the memory with names."""
    with Recorder() as recorder:
        for _ in range(500):
            nn.Linear(1, 1)(torch.ones(1, 1))

        assert len(recorder.kept_names.gone()) <= 65


def test_a_parameter_that_was_replaced_is_not_called_by_the_old_name() -> None:
    """Names belong to tensors, not to addresses."""
    with Recorder() as recorder:
        model = nn.Linear(2, 2, bias=False)
        model(torch.ones(1, 2))
        model = nn.Sequential(nn.Linear(2, 2, bias=False))
        output = model(torch.ones(1, 2))
    graph = capture_graph(output, recorder=recorder)

    assert [node.leaf.name for node in graph.nodes if node.leaf is not None] == ["0.weight"]


def test_the_argument_of_a_lambda_is_no_name(tmp_path: Path) -> None:
    """What a lambda calls its argument is not what the user calls the tensor."""
    script = tmp_path / "apply.py"
    script.write_text(
        "import torch\ndef of(f, given):\n    f(given)\n"
        "def main():\n    scale = torch.full((3,), 2.0, requires_grad=True)\n"
        "    of(lambda w: (w * scale).sum().backward(), torch.ones(3, requires_grad=True))\nmain()\n"
    )
    done = gradinspect("trace", script)

    assert "◆ given" in done.stdout
    assert "◆ scale" in done.stdout
    assert "◆ w" not in done.stdout


def test_views_that_torch_does_not_tell_about(tmp_path: Path) -> None:
    """A view from inference mode whose base was written since has no graph to ask for; nothing fails over it."""
    script = tmp_path / "views.py"
    script.write_text(
        "import sys\nimport torch\nw = torch.ones(4, requires_grad=True)\nbase = torch.ones(4)\n"
        "with torch.inference_mode():\n    view = base[:2]\nbase.mul_(w)\nheld = [view, {'view': view}]\n"
        "loss = (w * 2).sum()\n"
        "if len(sys.argv) == 1: loss.backward()\n"
    )
    runs = [
        gradinspect("trace", script),
        gradinspect("trace", script, "--at", "end", "--", "end"),
        gradinspect("check", script),
        gradinspect("grads", script),
        gradinspect("memory", script, "--iterations", "1"),
    ]
    root = gradinspect("trace", script, "--root", "view")

    assert [run.returncode for run in runs] == [0] * 5
    assert "Traceback" not in "".join(run.stderr for run in runs)
    assert root.returncode == 2
    assert "The root 'view' has no graph." in root.stderr


def test_a_line_inside_an_installed_package_is_told_from_the_programs_own(tmp_path: Path) -> None:
    """What a library made is marked, with its callers as far as the program itself."""
    code = "import torch\ndef call(f, x):\n    return f(x * 2)\n"
    library: dict[str, Callable[..., torch.Tensor]] = {}
    path = Path(sysconfig.get_path("purelib")) / "some_library" / "modeling.py"  # which need not be there
    exec(compile(code, str(path), "exec"), library)  # noqa: S102  # our own text, under the name of such a file
    with Recorder() as recorder:
        made = library["call"](torch.sum, torch.ones(2, requires_grad=True))
    graph = capture_graph(made, recorder=recorder)
    node = graph.nodes[0]
    own = own_frame(graph, node.frame)

    assert node.frame is not None
    assert graph.frames[node.frame].is_library
    assert graph.frames[node.frame].file == "some_library/modeling.py"
    assert own is not None
    assert own.file.endswith("test_kept_names.py")
    assert own_frame(graph, graph.captured_at.frame) is None


def test_the_paths_and_members_of_models_that_are_gone() -> None:
    """The latest first; parameters that live on keep their names, and a called module its path."""
    kept, living = KeptNames(), nn.Linear(2, 2)
    first, second = nn.Sequential(nn.Linear(2, 2)), nn.Sequential(nn.ReLU(), nn.Linear(2, 2, bias=False))
    weight = second[1].weight
    kept.note(first, {id(first): 0, id(first[0]): 1})
    kept.note(second, {id(second): 2, id(second[1]): 3})
    kept.note(living, {id(living): 4})
    del first, second
    gc.collect()
    gone = kept.gone()

    assert [kept.path_of(number) for number in range(6)] == ["", "0", "", "1", "", None]
    assert [(one.class_name, [member.path for member in one.members]) for one in gone] == [
        ("Sequential", ["1.weight"]), ("Sequential", []),
    ]  # fmt: skip
    assert gone[0].members[0].tensor is weight
    assert [dict(one.paths) for one in gone] == [{2: "", 3: "1"}, {0: "", 1: "0"}]


def test_models_of_which_nothing_is_left_are_forgotten() -> None:
    """When there are many; others are kept however many there are."""
    kept, models = KeptNames(), [nn.Linear(1, 1, bias=False) for _ in range(2 * FEW)]
    for number, model in enumerate(models):
        kept.note(model, {id(model): number})
    weight = models[0].weight
    assert kept.path_of(0) == kept.path_of(2 * FEW - 1) == ""
    models.clear()
    del model
    gc.collect()
    for number in range(2 * FEW, 6 * FEW):
        passing = nn.ReLU()
        kept.note(passing, {id(passing): number})

    assert weight is kept.gone()[-1].members[0].tensor
    assert (kept.path_of(0), kept.path_of(1), kept.path_of(6 * FEW - 1)) == ("", None, "")
    assert len(kept.gone()) <= 2 * FEW
