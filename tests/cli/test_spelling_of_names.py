"""A module or a parameter has one name on all screens: NOTE [One spelling of a name] in `call_names`."""

import json
import re
from pathlib import Path

import pytest
from runs import gradinspect

from gradinspect.storage.files import read_graph

PROGRAM = """\
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(
    nn.Linear(8, 16), nn.ReLU(), nn.Sequential(nn.Linear(16, 16), nn.Tanh()), nn.Linear(16, 4), nn.Linear(4, 4)
)
net(torch.randn(4, 8)).square().mean().backward()
"""
WIDER = PROGRAM.replace("16, 16", "16, 24").replace("Linear(16, 4)", "Linear(24, 4)").replace("net", "other")
PICTURES = ("svg", "dot", "mmd", "html")
ANSWERS = (
    ("trace", "net.json"),
    ("trace", "net.json", "--order", "forward"),
    ("trace", "net.json", "--around", "net.3.weight"),
    ("saved", "net.json", "--full"),
    ("memory", "net.json"),
    ("memory", "net.json", "--by", "storage", "--full"),
    ("find", "net.json", "class~Accumulate*"),
    ("find", "net.json", "name=net.0.bias", "--full"),
    ("find", "net.json", "name=0.bias", "--full"),
    ("explain", "net.json:1"),
    ("diff", "net.json", "other.json"),
)
NAME = re.compile(r"(?<![\w.#-])(?:[\w*,-]+\.)*[\d*,-]+\.(?:weight|bias)\b")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record two programs, and draw the first."""
    made = tmp_path_factory.mktemp("names")
    for name, program in (("net", PROGRAM), ("other", WIDER)):
        (made / f"{name}.py").write_text(program)
        outputs = [word for suffix in ("json", *PICTURES) for word in ("-o", f"{name}.{suffix}")]
        assert gradinspect("trace", f"{name}.py", *outputs, cwd=made).returncode == 0
    return made


def names_shown(folder: Path) -> set[str]:
    """Return the names of the parameters as screens have them."""
    graph = read_graph(folder / "net.json")
    return {f"net.{node.leaf.name}" for node in graph.nodes if node.leaf is not None}


@pytest.mark.parametrize("answer", ANSWERS, ids=" ".join)
def test_of_an_answer(folder: Path, answer: tuple[str, ...]) -> None:
    """Each parameter in it is one of the record, with the program's variable before an index."""
    screen = gradinspect(*answer, cwd=folder, COLUMNS="120").stdout
    found = set(NAME.findall(screen)) - {"0.bias"} if "name=0.bias" in answer else set(NAME.findall(screen))
    whole = {name for name in found if not re.search(r"[*,-]", name)}
    known = names_shown(folder)

    assert found or answer[0] in {"memory", "explain"}
    assert whole <= known | {name.replace("net.", "other.", 1) for name in known if answer[0] == "diff"}
    assert all(name.startswith(("net.", "other.")) for name in found)
    assert "model." not in screen


def test_of_a_finding(folder: Path) -> None:
    """Its sentence names parameters as screens do; its subjects are the paths themselves."""
    start, end = PROGRAM.rsplit("net(", 1)
    train = f"for _ in range(3):\n    optimizer.zero_grad()\n    net({end}    optimizer.step()\n"
    (folder / "unheld.py").write_text(f"{start}optimizer = torch.optim.SGD(net[:4].parameters(), lr=0.1)\n{train}")
    found = gradinspect("check", "unheld.py", "--format", "json", cwd=folder)
    (finding,) = json.loads(found.stdout)["findings"]

    assert finding["text"].startswith("Backward reaches net.4.weight and net.4.bias, ")
    assert finding["subjects"] == ["4.weight", "4.bias"]


@pytest.mark.parametrize("suffix", PICTURES)
def test_of_a_picture(folder: Path, suffix: str) -> None:
    """No index begins a name, and no model is called otherwise than in the program."""
    text = (folder / f"net.{suffix}").read_text()
    text = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL) if suffix != "html" else text
    found = set(NAME.findall(re.sub(r"</?[A-Za-z][^<>]*>", "", text)))

    assert all(name.startswith("net.") for name in found)
    assert not re.search(r"\bmodel\.\d", text)
