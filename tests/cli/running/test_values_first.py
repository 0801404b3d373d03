"""Programs whose values decide what runs next: `fit` and `plan` run them with values first, and say so."""

import json
from pathlib import Path

import pytest
from runs import gradinspect

EXPERTS = """
import torch
from torch import nn

torch.manual_seed(0)


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(16, 3)
        self.experts = nn.ModuleList(nn.Linear(16, 16) for _ in range(3))

    def forward(self, x):
        if x.max() > 3:
            x = x.clamp(max=3)
        weight, chosen = self.gate(x).softmax(-1).topk(2, -1)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows, slot = torch.where(chosen == number)
            if rows.numel():
                out = out.index_add(0, rows, expert(x[rows]) * weight[rows, slot, None])
        return out


model = nn.Sequential(*(Experts() for _ in range(3)))
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    loss = model(torch.randn(64, 16)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
SEARCHING = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(20, 64), nn.Tanh(), nn.Linear(64, 1))
x, y = torch.randn(500, 20), torch.randn(500, 1)
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4, line_search_fn="strong_wolfe")


def closure():
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    return loss


for _ in range(3):
    optimizer.step(closure)
"""
ACTING = """
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(policy.parameters())
for episode in range(3):
    state, logs, actions = np.zeros((1, 4), np.float32), [], []
    while abs(state[0, 0]) < 0.4 and len(logs) < 25:
        drawn = Categorical(logits=policy(torch.from_numpy(state)))
        action = drawn.sample()
        logs.append(drawn.log_prob(action))
        actions.append(action.cpu().numpy())
        state = state + 0.1 * (2 * actions[-1][:, None] - 1).astype(np.float32)
    loss = -torch.cat(logs).sum() * len(actions)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
SELECTING = """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 8))
optimizer = torch.optim.Adam(net.parameters())
for _ in range(3):
    boxes, scores = torch.rand(200, 12), torch.rand(200)
    valid = (scores > 0.6) & (boxes[:, 0] > 0.2)
    y, label = net(boxes)[valid], (boxes[valid, 1] * 5).long()
    loss = sum(y[label == one].mean(0).square().sum() for one in label.unique().tolist())
    large = torch.masked_select(y, y > 0.1)
    if len(large):
        loss = loss + large.pow(2).mean()
    counts = torch.bincount(label, minlength=5).tolist()
    loss = loss + sum(part.sum() for part in y[label.argsort()].split(counts)) + y.topk(3, 1)[0].sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
SHARPNESS_AWARE = """
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)


class Scaled(nn.Linear):
    def forward(self, x):
        y = super().forward(x)
        return y / y.std().item() if y.abs().max() > 0.5 else y


first, last = Scaled(30, 200), nn.Linear(200, 10)
parameters = [*first.parameters(), *last.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
for _ in range(3):
    x, y = torch.randn(64, 30), torch.randint(0, 10, (64,))

    def ascend():
        hidden = checkpoint(first, x, use_reentrant=False)
        loss = nn.functional.cross_entropy(last(hidden), y)
        loss.backward()

    ascend()
    with torch.no_grad():
        norm = torch.stack([one.grad.norm() for one in parameters]).norm()
        steps = [one.grad * (0.05 / norm) for one in parameters] if norm > 0.01 else []
        torch._foreach_add_(parameters, steps)
    optimizer.zero_grad()
    ascend()
    with torch.no_grad():
        torch._foreach_sub_(parameters, steps)
    optimizer.step()
    optimizer.zero_grad()
"""
ONE_A_ROW = """
import torch
from torch import nn

torch.manual_seed(0)
embed, head = nn.Embedding(20, 8), nn.Linear(8, 5)
optimizer = torch.optim.Adam([*embed.parameters(), *head.parameters()])
for _ in range(3):
    tokens, label = torch.randint(1, 20, (16, 10)), torch.randint(0, 5, (16, 1))
    tokens[:, 6] = 0
    place = (tokens == 0).nonzero(as_tuple=True)[1]
    out = head(embed(tokens)[torch.arange(16), place])
    right = torch.zeros(16, 5, dtype=torch.bool).scatter_(1, label, True)
    loss = (out[~right].view(16, 4) - out[right].unsqueeze(1)).relu().mean()
    classes, inverse = (torch.arange(16) % 4).unique(return_inverse=True)
    means = torch.zeros(len(classes), 5).index_add(0, inverse, out) / 4
    loss = loss + (means - torch.eye(4, 5)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
PADDED = """
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

torch.manual_seed(0)
embed, rnn, head = nn.Embedding(40, 24), nn.LSTM(24, 32, 2, bidirectional=True), nn.Linear(64, 7)
optimizer = torch.optim.AdamW([*embed.parameters(), *rnn.parameters(), *head.parameters()])
for _ in range(3):
    lengths = torch.randint(2, 15, (8,)).sort(descending=True)[0]
    tokens, label = torch.randint(0, 40, (15, 8)), torch.randint(0, 7, (15, 8))
    out, back = pad_packed_sequence(rnn(pack_padded_sequence(embed(tokens), lengths))[0], total_length=15)
    mask = torch.arange(15)[:, None] < back
    loss = nn.functional.cross_entropy(head(out)[mask], label[mask])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
UNSORTED = """
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

torch.manual_seed(0)
rnn, head = nn.RNN(6, 20, batch_first=True), nn.Linear(20, 3)
optimizer = torch.optim.SGD([*rnn.parameters(), *head.parameters()], 0.1, momentum=0.9)
for _ in range(3):
    lengths = torch.randint(1, 12, (16,)).tolist()
    x, label = torch.randn(16, max(lengths), 6), torch.randint(0, 3, (16,))
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    loss = nn.functional.cross_entropy(head(rnn(packed)[1][-1]), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
LISTED = """
import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence, unpack_sequence

torch.manual_seed(0)
rnn, head = nn.GRU(5, 16, num_layers=2), nn.Linear(16, 1)
optimizer = torch.optim.Adam([*rnn.parameters(), *head.parameters()])
for _ in range(3):
    out, hidden = rnn(pack_sequence([torch.randn(length, 5) for length in (4, 9, 2, 7)], enforce_sorted=False))
    loss = sum(head(part).square().mean() for part in unpack_sequence(out)) + head(hidden[-1]).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "program",
    [EXPERTS, SEARCHING, ACTING, SELECTING, SHARPNESS_AWARE, ONE_A_ROW, PADDED, UNSORTED, LISTED],
    ids=[
        "experts", "line search", "arrays", "masks", "sharpness-aware", "one a row", "packed and padded",
        "packed unsorted", "packed list",
    ],
)  # fmt: skip
def test_what_is_predicted_with_values_is_what_is_measured(program: str, tmp_path: Path) -> None:
    """To the byte, in each step."""
    (tmp_path / "train.py").write_text(program)
    predicted, measured = (
        json.loads(gradinspect("fit", "train.py", *options, "--format", "json", cwd=tmp_path).stdout)
        for options in ((), ("--real",))
    )

    assert predicted["peak_bytes"] == measured["peak_bytes"]
    assert [one["peak_bytes"] for one in predicted["steps"]] == [one["peak_bytes"] for one in measured["steps"]]
    assert not predicted["is_bound"]
    assert predicted["values_from"].startswith("Values read at train.py:")
    assert measured["values_from"] is None


BRANCHING = """
import torch

print("begun")
weight = torch.full((50, 4), 2.0, requires_grad=True)
for step in range(3):
    loss = (weight * 2).square().mean()
    if loss > 3:
        loss = loss + torch.cat([weight] * 9).mean()
    loss.backward()
    weight.grad = None
"""


@pytest.mark.slow
def test_it_is_said_which_lines_were_read(tmp_path: Path) -> None:
    """At the top; the program prints once, and is run with values in processes that print nothing."""
    (tmp_path / "train.py").write_text(BRANCHING)
    done = gradinspect("fit", "train.py", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert done.stdout.count("begun") == 1
    assert "\n  Values read at train.py:8 (3 reads) are those of 2 real steps.\n" in done.stdout
    assert done.stderr == "running 'train.py' with values, for what it reads\n"


BROKEN_INDEX = """
import torch

weight = torch.ones(30, requires_grad=True)
loss = weight.square().mean()
if loss > 0:
    loss = weight[torch.tensor([400])].sum()
loss.backward()
"""
BROKEN_BACKWARD = """
import torch

weight = torch.ones(30, requires_grad=True)
order = (weight * 2).argsort()
loss = weight[: int(order[0]) + 5].unique().sum()
loss.backward()
"""
BROKEN_LATER = """
import torch

weight = torch.ones(30, requires_grad=True)
for step in range(3):
    loss = weight.square().mean()
    if step:
        raise ValueError("\x1b[31mlabels")
    loss = loss + weight[int(weight.argmax()) :].sum()
    loss.backward()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "shown"),
    [
        pytest.param(BROKEN_INDEX, "index 400", id="before backward"),
        pytest.param(BROKEN_BACKWARD, "'_unique2'", id="in backward"),
        pytest.param(BROKEN_LATER, "ValueError", id="after a step"),
    ],
)
def test_a_program_that_fails_with_values_shows_its_own_error(program: str, shown: str, tmp_path: Path) -> None:
    """As a real run does: no number to answer with would help."""
    (tmp_path / "train.py").write_text(program)
    predicted, measured = (gradinspect("fit", "train.py", *options, cwd=tmp_path) for options in ((), ("--real",)))
    first, *lines = predicted.stderr.splitlines()

    assert predicted.returncode == measured.returncode == 3
    assert first == "running 'train.py' with values, for what it reads"
    assert lines == measured.stderr.replace("\x1b", "\\x1b").splitlines()
    assert any(shown in line for line in lines)
    assert "--hint" not in predicted.stderr


@pytest.mark.slow
def test_a_device_that_is_missing_is_not_the_error_of_the_program(tmp_path: Path) -> None:
    """The line that reads values is named, as fake tensors need no device."""
    (tmp_path / "train.py").write_text(
        BROKEN_INDEX.replace("torch.tensor([400])", "(_ for _ in ()).throw(RuntimeError('No CUDA GPUs are available'))")
    )
    done = gradinspect("fit", "train.py", cwd=tmp_path)

    assert done.returncode == 2
    assert "'if loss > 0:' (train.py:6) reads values" in done.stderr
    assert "--hint 1" in done.stderr


@pytest.mark.slow
def test_plans_read_again_what_a_forward_has_read(tmp_path: Path) -> None:
    """A checkpointed block of experts is routed in backward as it was in forward: predicted as measured."""
    (tmp_path / "train.py").write_text(EXPERTS.replace("(64, 16)", "(2048, 16)").replace("AdamW", "SGD"))
    done = gradinspect("plan", "train.py", "--fit", "3MiB", "--try", "--format", "json", cwd=tmp_path)
    found = json.loads(done.stdout)
    best = found["plans"][0]

    assert done.returncode == 0, done.stderr
    assert best["peak_bytes"] == best["measured_peak_bytes"]
    assert any(note.startswith("Values read at train.py:") for note in found["notes"])
