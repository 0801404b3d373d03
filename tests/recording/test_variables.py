"""The user's names: stable ones first."""

from pathlib import Path

import pytest
from runs import gradinspect

from gradinspect.recording.variables import loop_targets
from gradinspect.storage import read_graph

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
