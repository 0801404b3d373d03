"""Loops that keep history across iterations, in the ways people do it, and loops that do not."""

HEAD = """
import collections, torch
from torch import nn
torch.manual_seed(0)
model = nn.Linear(4, 4)
x = torch.randn(8, 4)
"""

# Name: (program, who holds, under which name, the line that stored it)
GROWING: dict[str, tuple[str, str, str, str | None]] = {
    "list": (
        """\
losses = []
for _ in range(5):
    loss = model(x).tanh().sum()
    losses.append(loss)
    loss.backward()
""",
        "variable",
        "losses[*]",
        "losses.append(loss)",
    ),
    "sum": (
        """\
total = 0
for _ in range(5):
    model(x).tanh().sum().backward()
    total += model(x).exp().sum()
""",
        "variable",
        "total",
        "total += model(x).exp().sum()",
    ),
    "deque": (
        """\
seen = collections.deque()
for _ in range(5):
    y = model(x).tanh()
    seen.append(y)
    y.sum().backward()
""",
        "variable",
        "seen[*]",
        "seen.append(y)",
    ),
    "dict": (
        """\
log = {}
for step in range(5):
    y = model(x).sum()
    log[f's{step}'] = y
    y.backward()
""",
        "variable",
        "log[*]",
        "log[f's{step}'] = y",
    ),
    "attribute": (
        """\
class Log:
    pass
log = Log()
log.kept = []
for _ in range(5):
    y = model(x).sum()
    log.kept.append(y)
    y.backward()
""",
        "variable",
        "log.kept[*]",
        "log.kept.append(y)",
    ),
    "of a module": (
        """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.history = []
    def forward(self, x):
        y = self.fc(x)
        self.history.append(y)
        return y
net = Net()
for _ in range(5):
    net(x).sum().backward()
""",
        "variable",
        "net.history[*]",
        "self.history.append(y)",
    ),
    "closure": (
        """\
def make():
    kept = []
    def keep(y):
        kept.append(y)
    return keep
keep = make()
for _ in range(5):
    y = model(x).sum()
    keep(y)
    y.backward()
""",
        "variable",
        "keep.<closure>.kept[*]",
        "kept.append(y)",
    ),
    "hidden state": (
        """\
cell = nn.RNNCell(4, 4)
h = torch.zeros(8, 4)
for _ in range(5):
    h = cell(x, h)
    h.sum().backward(retain_graph=True)
""",
        "graph",
        "",
        "h = cell(x, h)",
    ),
    "create_graph": (
        """\
for _ in range(5):
    model(x).tanh().sum().backward(create_graph=True)
""",
        "gradient",
        "",
        None,
    ),
}

CLEAN = {
    "two losses": """\
for _ in range(5):
    second = model(x).exp().sum()
    model(x).tanh().sum().backward()
    second.backward()
    del second
""",
    "adversary": """\
critic = nn.Linear(4, 1)
for _ in range(5):
    made = model(x)
    critic(made.detach()).sum().backward()
    critic(made).sum().backward()
    del made
""",
    "detached": """\
losses = []
for _ in range(5):
    loss = model(x).sum()
    losses.append(loss.detach())
    loss.backward()
""",
    "number": """\
losses = []
for _ in range(5):
    loss = model(x).sum()
    losses.append(loss.item())
    loss.backward()
""",
    "hidden state": """\
cell = nn.RNNCell(4, 4)
h = torch.zeros(8, 4)
for _ in range(5):
    h = cell(x, h.detach())
    h.sum().backward()
""",
    "last one": """\
last = None
for _ in range(5):
    y = model(x).sum()
    y.backward()
    last = y
""",
    "penalty": """\
for _ in range(5):
    x.requires_grad_()
    (g,) = torch.autograd.grad(model(x).tanh().sum(), x, create_graph=True)
    g.square().sum().backward()
""",
}
