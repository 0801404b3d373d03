"""The same blocks share a row on every screen of one program: NOTE [One fold] in `name_folding`."""

import re
from pathlib import Path

import pytest
from runs import gradinspect

EQUAL = """\
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.mlp = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
    def forward(self, x):
        return x + self.mlp(self.norm(x))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(16, 16)
        self.blocks = nn.ModuleList(Block() for _ in range(9))
        self.head = nn.Linear(16, 16)
    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)

torch.manual_seed(0)
net = Net()
optimizer = torch.optim.AdamW(net.parameters())
for _ in range(3):
    loss = net(torch.arange(32).view(4, 8) % 16).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

# the first stage has no shortcut; only the last keeps what its last unit gives: all others share it with the next one
STAGES = """\
import torch
from torch import nn

class Unit(nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.conv = nn.Conv2d(inside, outside, 3, padding=1)
        self.relu = nn.ReLU()
        self.shortcut = nn.Conv2d(inside, outside, 1) if inside != outside else None
    def forward(self, x):
        return self.relu(self.conv(x) + (x if self.shortcut is None else self.shortcut(x)))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.stage1 = nn.Sequential(Unit(8, 8), Unit(8, 8))
        self.stage2 = nn.Sequential(Unit(8, 12), Unit(12, 12))
        self.stage3 = nn.Sequential(Unit(12, 16), Unit(16, 16))
        self.stage4 = nn.Sequential(Unit(16, 20), Unit(20, 20))
        self.head = nn.Linear(20, 4)
    def forward(self, x):
        x = self.stage4(self.stage3(self.stage2(self.stage1(self.stem(x)))))
        return self.head(x.mean((2, 3)))

torch.manual_seed(0)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), 0.01)
for _ in range(3):
    optimizer.zero_grad()
    net(torch.randn(2, 3, 16, 16)).square().mean().backward()
    optimizer.step()
"""

MODULES = {"overview": (), "memory": (), "grads": (), "fit": (), "trace": ()}  # that have a row for each module
ALL = MODULES | {
    "saved": (),
    "find": ("bytes>0",),
    "diff": ("changed.py",),
    "plan": ("--fit", "150KiB"),
}  # `step` stops at nodes, and shows one at a time


def outermost(screen: str, name: str) -> set[str]:
    """Return the outermost blocks that rows stand for, `blocks.0-8`, `stage2-4`, without those that are the odd one."""
    rows = re.sub(r"\S+: [\d.]+ times", "", screen)
    return {found.group() for found in re.finditer(rf"\b{name}(?:\.\d+(?:-\d+)?|\d+(?:-\d+)?)", rows)}


@pytest.mark.slow
@pytest.mark.parametrize("verb", ALL)
def test_equal_blocks(tmp_path: Path, verb: str) -> None:
    """Nine equal blocks have one row in every answer."""
    (tmp_path / "net.py").write_text(EQUAL)
    (tmp_path / "changed.py").write_text(EQUAL.replace("GELU", "SiLU"))
    screen = gradinspect(verb, "net.py", *ALL[verb], cwd=tmp_path, COLUMNS="100").stdout

    assert "blocks.0-8" in outermost(screen, "blocks")


@pytest.mark.slow
@pytest.mark.parametrize("command", [("saved",), ("find", "bytes>0"), ("grads",), ("grads", "--steps", "2")])
def test_two_blocks(tmp_path: Path, command: tuple[str, ...]) -> None:
    """They share a row, too, though all rows would fit a screen."""
    (tmp_path / "net.py").write_text(EQUAL.replace("range(9)", "range(2)"))
    verb, *options = command
    screen = gradinspect(verb, "net.py", *options, cwd=tmp_path, COLUMNS="100").stdout

    assert outermost(screen, "blocks") == {"blocks.0-1"}


QUICK = ("memory", "trace")  # the others wait for several runs, or whole steps


@pytest.mark.parametrize("verb", [pytest.param(v, marks=() if v in QUICK else pytest.mark.slow) for v in MODULES])
def test_stages_of_a_network(tmp_path: Path, verb: str) -> None:
    """Those with the same modules inside share a row, whatever their sizes and whichever of them holds memory."""
    (tmp_path / "net.py").write_text(STAGES)
    screen = gradinspect(verb, "net.py", cwd=tmp_path, COLUMNS="100").stdout
    rows = screen.partition("by module")[2] or screen  # `fit` names above them the one that is at work at the peak
    modules = rows.partition("gradient of  ")[0]  # a parameter shares a row with those of any block
    modules = re.sub(r"(?m)^┊ ┊.*$", "", modules)  # inside of a block, `trace` shows one of its copies

    assert outermost(modules, "stage") == {"stage1", "stage2-4"}


def pictures(program: str, folder: Path) -> dict[str, str]:
    """Draw a program in four formats, and return the text in each."""
    (folder / "drawn.py").write_text(program)
    files = {suffix: folder / f"net.{suffix}" for suffix in ("svg", "dot", "mmd", "html")}
    outputs = [word for suffix in files for word in ("-o", f"net.{suffix}")]
    gradinspect("trace", "drawn.py", *outputs, "--force", cwd=folder)
    drawn = {suffix: file.read_text() for suffix, file in files.items()}
    for mark, char in (("&#45;", "-"), ("&#39;", "'"), ("#39;", "'")):
        drawn = {suffix: text.replace(mark, char) for suffix, text in drawn.items()}
    return drawn | {suffix: re.sub(r"</?[A-Za-z][^<>]*>", "", drawn[suffix]) for suffix in ("svg", "dot")}


@pytest.mark.slow
def test_blocks_in_a_picture(tmp_path: Path) -> None:
    """Equal blocks are one box in each format, and so are stages, of which the one that holds far more is named."""
    blocks = pictures(EQUAL, tmp_path)
    stages = pictures(STAGES.replace("20", "160"), tmp_path)  # channels of the last; the others have 12 and 16

    for suffix, drawn in blocks.items():
        assert re.search(r"blocks\.\s*0-8", drawn), suffix
    for suffix, drawn in stages.items():
        assert "stage2-4" in drawn, suffix
        assert re.search(r"stage4: \d+\.\d times the others' bytes", drawn), suffix


def test_a_step_of_one_block_says_which(tmp_path: Path) -> None:
    """`step` shows one node at a time: a breakpoint at a module stops in it, under the same name."""
    (tmp_path / "net.py").write_text(EQUAL)
    screen = gradinspect("step", "net.py", cwd=tmp_path, typed="until blocks.4\nq\n").stdout

    assert re.search(r"#\d+ \w+Backward0  blocks\.4", screen)


LAYERS = """\
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 1))
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(3):
    optimizer.zero_grad()
    net(torch.randn(4, 6)).square().mean().backward()
    optimizer.step()
"""
PARAMETER = re.compile(r"[\w.]*\d+\.(?:weight|bias)\b")


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ("saved", "net.py", "--full"),
        ("find", "net.py", "class=AccumulateGrad", "--full"),
        ("grads", "net.py", "--full"),
        ("step", "net.py"),
        ("diff", "net.py", "frozen.py"),
    ],
    ids=lambda command: command[0],
)
def test_a_parameter_has_one_name(tmp_path: Path, command: tuple[str, ...]) -> None:
    """That of `trace`: the program's variable, and that of named_parameters()."""
    (tmp_path / "net.py").write_text(LAYERS)
    (tmp_path / "frozen.py").write_text(LAYERS.replace("optim", "net[2].bias.requires_grad_(False)\noptim", 1))
    traced = set(PARAMETER.findall(gradinspect("trace", "net.py", "--full", cwd=tmp_path).stdout))
    typed = "until net.2.bias\n" if command[0] == "step" else ""
    named = set(PARAMETER.findall(gradinspect(*command, cwd=tmp_path, typed=typed).stdout))

    assert traced == {f"net.{layer}.{name}" for layer in (0, 2, 4) for name in ("weight", "bias")}
    assert named
    assert named <= traced
