"""How long `gradinspect check` watches a program by default, and what it sees after the last call."""

from pathlib import Path

import pytest
from runs import gradinspect

START = "import torch\nfrom torch import nn\ntorch.manual_seed(0)\n"


def checked(folder: Path, program: str, *options: str) -> tuple[str, int, str]:
    """Check a program and return its output, its exit code and its last line of errors."""
    script = folder / "train.py"
    script.write_text(START + program)
    done = gradinspect("check", script, *options, is_measured=False)  # ten seconds are a limit, too
    return done.stdout, done.returncode, (done.stderr.splitlines() or [""])[-1]


def test_every_optimizer_steps_twice(tmp_path: Path) -> None:
    """A generator that learns at every fifth step is seen twice."""
    output, _, _ = checked(
        tmp_path,
        "D, G = nn.Linear(4, 1), nn.Linear(2, 4)\n"
        "opt_d, opt_g = (torch.optim.SGD(net.parameters(), lr=0.1) for net in (D, G))\n"
        "for step in range(100):\n    opt_d.zero_grad()\n"
        "    D(G(torch.randn(8, 2)).detach()).mean().backward()\n    opt_d.step()\n"
        "    if step % 5 == 4:\n        opt_g.zero_grad()\n        D(G(torch.randn(8, 2))).mean().backward()\n"
        "        opt_g.step()\n    print(step)\n",
    )

    assert output.splitlines()[-4:] == [
        "99",
        "Only counted: 54 of 120 backward calls, on lines that had been looked at; any",
        "  evaluation between them was not looked at.",
        "No problems found in 120 backward calls of train.py",
    ]


@pytest.mark.slow
def test_two_steps_of_accumulated_gradients(tmp_path: Path) -> None:
    """Two steps that take 200 backward calls are seen, without a limit that is named."""
    output, _, _ = checked(
        tmp_path,
        "net = nn.Linear(4, 1)\noptimizer = torch.optim.SGD(net.parameters(), lr=0.1)\nfor step in range(300):\n"
        "    net(torch.randn(8, 4)).mean().backward()\n"
        "    if step % 100 == 99:\n        optimizer.step()\n        optimizer.zero_grad()\n",
    )

    assert output == (
        "Only counted: 96 of 300 backward calls, on lines that had been looked at; any\n"
        "  evaluation between them was not looked at.\n"
        "No problems found in 300 backward calls of train.py\n"
    )


@pytest.mark.slow
def test_a_limit_is_said(tmp_path: Path) -> None:
    """An optimizer that never steps is not waited for without end."""
    output, code, _ = checked(
        tmp_path,
        "net = nn.Linear(4, 1)\noptimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "later = torch.optim.SGD(net.parameters(), lr=0.01)\nwhile True:\n    optimizer.zero_grad()\n"
        "    net(torch.randn(8, 4)).mean().backward()\n    optimizer.step()\n",
        "--only", "GI1",
    )  # fmt: skip

    assert output == (
        "Not checked: what comes after 600 backward calls, when later had not stepped\n"
        "  twice. More steps would show it.\nNo problems found in 600 backward calls of train.py\n"
    )
    assert code == 0


@pytest.mark.parametrize("options", [(), ("--steps", "2")], ids=["default", "steps"])
def test_what_follows_the_last_call_is_seen(tmp_path: Path, options: tuple[str, ...]) -> None:
    """A step whose optimizer holds a part that is never used, a `.grad` that is None, after the last call."""
    step, _, _ = checked(
        tmp_path,
        "net, unused = nn.Linear(4, 1), nn.Linear(4, 1)\nfor _ in range(2):\n"
        "    net(torch.randn(8, 4)).mean().backward()\nprint('stepping')\n"
        "torch.optim.SGD([*net.parameters(), *unused.parameters()], lr=0.1).step()\n",
        *options,
    )
    read, _, _ = checked(
        tmp_path,
        "net, x = nn.Linear(4, 1), torch.randn(8, 4, requires_grad=True)\nfor _ in range(2):\n"
        "    net(x.detach()).mean().backward()\nprint(x.grad)\n",
        *options,
    )

    assert "GI304" in step
    assert "unused.weight" in step
    assert "GI301" in read


@pytest.mark.parametrize("options", [(), ("--steps", "2")], ids=["default", "steps"])
def test_a_failure_after_the_last_call_is_told(tmp_path: Path, options: tuple[str, ...]) -> None:
    """With the script's own error and exit code 3."""
    output, code, last = checked(
        tmp_path,
        "net = nn.Linear(4, 1)\noptimizer = torch.optim.SGD(net.parameters(), lr=0.1)\nfor step in range(9):\n"
        "    net(torch.randn(8, 4)).mean().backward()\n    optimizer.step()\n    optimizer.zero_grad()\n"
        "    print([0.1][step])\n",
        *options,
    )

    assert (code, last) == (3, "gradinspect: The script failed with IndexError after 2 backward calls.")
    assert output == "0.1\nThe program failed, and no problems found until then, in 2 backward calls of train.py\n"


def test_the_program_stops_where_its_next_graph_begins(tmp_path: Path) -> None:
    """It does not go on to the next backward call."""
    output, _, _ = checked(
        tmp_path,
        "net = nn.Linear(4, 1)\nfor step in range(300):\n    loss = net(torch.randn(8, 4)).mean()\n"
        "    print(step)\n    loss.backward()\n    print(loss.item() * 0)\n",
    )

    assert [line.lstrip("-") for line in output.splitlines()[:-3]] == [
        text for step in range(300) for text in (str(step), "0.0")
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        "h = net(x) + (later(x) if step > 4 else 0)",
        "h = net(x) if step % 7 else later(x)",
        "later.requires_grad_(step > 4); h = net(x) + later(x)",
        "h = net(x) + later(x).clamp(max=-9 if step < 5 else None, min=-99)",
    ],
    ids=["warm_up", "by_chance", "unfreezing", "saturated_at_first"],
)
def test_a_part_that_is_used_later_is_none(tmp_path: Path, body: str) -> None:
    """What was not used, or got a zero gradient, is reported only if that stays so to the end of what is watched."""
    program = (
        "net, later = nn.Linear(4, 1), nn.Linear(4, 1)\n"
        "optimizer = torch.optim.SGD([*net.parameters(), *later.parameters()], lr=0.01)\nfor step in range(%d):\n"
        "    x = torch.randn(8, 4)\n    %s\n    optimizer.zero_grad()\n    h.square().mean().backward()\n"
        "    optimizer.step()\n"
    )
    whole, code, _ = checked(tmp_path, program % (20, body), "--only", "GI3,GI6")
    short, _, _ = checked(tmp_path, program % (3, body.replace("step % 7", "True")), "--only", "GI3,GI6")

    assert (whole.splitlines()[-1].split(" in ")[0], code) == ("No problems found", 0)
    assert body.startswith("later") or "GI" in short
