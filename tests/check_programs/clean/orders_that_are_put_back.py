"""Rows that are reordered together with their targets, put back, mixed, or compared with what has no order."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

torch.manual_seed(0)
x = torch.randn(16, 6, 4)
y = (x[:, 0, 0] > 0).long()
lengths = torch.arange(2, 7).repeat(4)[:16]
cell, head, layer = nn.GRU(4, 8, batch_first=True), nn.Linear(8, 2), nn.Linear(4, 2)
parameters = [*cell.parameters(), *head.parameters(), *layer.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.1)
compare = nn.functional.cross_entropy


def read(rows, sizes):
    """Score sequences in the order of their lengths."""
    return head(cell(pack_padded_sequence(rows, sizes, batch_first=True))[1][-1])


def put_back():
    """Sort by the lengths, and put the scores back by a second sort."""
    sizes, order = lengths.sort(descending=True)
    return compare(read(x[order], sizes)[order.argsort()], y)


def put_back_by_writing():
    """Write the scores to their first places."""
    sizes, order = lengths.sort(descending=True)
    scores = read(x[order], sizes)
    return compare(torch.empty_like(scores).index_copy(0, order, scores), y)


def sorted_together():
    """Sort the targets as well."""
    sizes, order = lengths.sort(descending=True)
    return compare(read(x[order], sizes), y[order])


def sorted_in_python():
    """Sort the targets in a list."""
    sizes, order = lengths.sort(descending=True)
    return compare(read(x[order], sizes), torch.tensor([int(y[place]) for place in order.tolist()]))


def by_torch():
    """Let torch sort, and put back."""
    out, _ = pad_packed_sequence(cell(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))[0])
    return compare(head(out[0]), y)


def mixed():
    """Mix each example with another one."""
    order = torch.randperm(16)
    scores = layer(0.7 * x[:, 0] + 0.3 * x[order][:, 0])
    return 0.7 * compare(scores, y) + 0.3 * compare(scores, y[order])


def against_others():
    """Tell an example from one of another row."""
    order = torch.randperm(16)
    ones, zeros = torch.ones(16), torch.zeros(16)
    binary = nn.functional.binary_cross_entropy_with_logits
    return binary(layer(x[:, 0])[:, 0], ones) + binary(layer(x[order][:, 0])[:, 0], zeros)


def two_views():
    """Compare two views of examples, each with its own place as its label."""
    order = torch.randperm(16)
    first, second = layer(x[order][:, 0]), layer(x[order][:, 1])
    return compare(first @ second.T, torch.arange(16))


def columns():
    """Reorder as many columns as there are rows."""
    points = torch.randn(16, 16, 4)
    return compare(layer(points[:, torch.randperm(16)]).amax(1), y)


steps = (
    put_back, put_back_by_writing, sorted_together, sorted_in_python, by_torch, mixed, against_others, two_views,
    columns,
)  # fmt: skip
for _ in range(5):
    optimizer.zero_grad()
    torch.stack([step() for step in steps]).sum().backward()
    optimizer.step()
