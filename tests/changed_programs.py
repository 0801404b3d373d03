"""A small transformer-like network that can be changed in one respect at a time, and its graph."""

from functools import cache

import torch
from torch import nn
from torch.nn import functional

from gradinspect.graph import Graph
from gradinspect.recording.capture import capture_graph
from gradinspect.recording.recorder import Recorder

BLOCKS = 4


class Block(nn.Module):
    """A normalization and two linear layers around an activation."""

    def __init__(self, changes: frozenset[str]) -> None:
        super().__init__()
        self.changes = changes
        self.ln, self.attn, self.mlp = nn.LayerNorm(16), nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run."""
        y = x if "bare" in self.changes else self.ln(x)
        y = y.clone() if "clone" in self.changes else y
        y = self.attn(y)
        y = y.t().reshape(-1, 4, 4) if "copy" in self.changes else y.view(-1, 4, 4)
        y = torch.sigmoid(y) if "sigmoid" in self.changes else torch.relu(y)
        return x + self.mlp(y.view(-1, 16))


class Net(nn.Module):
    """Four blocks."""

    def __init__(self, changes: frozenset[str]) -> None:
        super().__init__()
        self.changes = changes
        self.inp = nn.Linear(8, 16)
        blocks = [Block(changes) for _ in range(BLOCKS - ("fewer" in changes))]
        if "another" in changes:
            blocks.append(Block(frozenset()))
        if "renamed" in changes:
            self.blocks = nn.ModuleList(blocks)
        else:
            self.h = nn.ModuleList(blocks)
        tail = [nn.ReLU(), nn.LayerNorm(16)]
        if "inserted" in changes:
            tail.insert(1, nn.BatchNorm1d(16))
        self.tail = nn.Sequential(*(tail[::-1] if "reordered" in changes else tail))
        self.head = nn.Linear(16, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run."""
        x = self.inp(x)
        x = x.detach() if "detach" in self.changes else x
        for block in self.blocks if "renamed" in self.changes else self.h:
            x = block(x)
        return self.head(self.tail(x))


def loss_of(changes: frozenset[str]) -> tuple[torch.Tensor, Recorder]:
    """Run the network with some changes, without backward."""
    torch.manual_seed(0)
    net, x = Net(changes), torch.randn(5, 8)
    if "frozen" in changes:
        net.get_parameter("h.1.attn.weight").requires_grad_(requires_grad=False)
    if "weight" in changes:
        net.get_parameter("h.2.mlp.weight").data[3, 5] += 1e-3
    if "half" in changes:
        net, x = net.bfloat16(), x.bfloat16()
    with Recorder() as recorder, torch.autocast("cpu", torch.bfloat16, enabled="autocast" in changes):
        loss = functional.cross_entropy(net(x), torch.arange(5) % 3)
    return loss, recorder


@cache
def changed_graph(*changes: str) -> Graph:
    """Return the graph with some changes."""
    loss, recorder = loss_of(frozenset(changes))
    return capture_graph(loss, recorder=recorder)
