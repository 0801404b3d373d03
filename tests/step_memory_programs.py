"""Small programs of two training steps, each with another way to use memory."""

_HEAD = """
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
"""
_MLP = """
class MLP(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.first = nn.Linear(24, width)
        self.norm = nn.LayerNorm(width)
        self.second = nn.Linear(width, width)
        self.last = nn.Linear(width, 7)

    def forward(self, x):
        x = F.gelu(self.norm(self.first(x)))
        x = x + F.dropout(F.relu(self.second(x)), 0.1)
        return self.last(x)


model = MLP()
"""
_GPT = """
class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.between = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def attend(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.project(y.transpose(1, 2).reshape(batch, length, width))

    def forward(self, x):
        x = x + F.dropout(self.attend(self.before(x)), 0.1)
        return x + F.dropout(self.down(F.gelu(self.up(self.between(x)))), 0.1)


class GPT(nn.Module):
    def __init__(self, layers=3, width=32, heads=4, vocabulary=300, length=24, recomputes=()):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        self.recomputes = recomputes

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
        for number, block in enumerate(self.blocks):
            x = checkpoint(block, x, use_reentrant=False) if number in self.recomputes else block(x)
        return self.head(self.norm(x))


def gpt_loss(model, tokens):
    logits = model(tokens)
    return F.cross_entropy(logits.flatten(0, 1), tokens.flatten())

"""
_AUTOCAST = "with torch.autocast('cpu', torch.bfloat16):\n        "
_STEPS = """
for _ in range(2):
    x, target = torch.randn(16, 24), torch.randint(7, (16,))
    loss = F.cross_entropy(model(x), target)
    loss.backward()
    {clip}optimizer.step()
    optimizer.zero_grad()
"""
_GPT_STEPS = """
for _ in range(2):
    tokens = torch.randint(20, (3, 24))
    {context}loss = gpt_loss(model, tokens)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def _mlp(optimizer: str, clip: str = "") -> str:
    made = f"optimizer = torch.optim.{optimizer}\n"
    return _HEAD + _MLP + made + _STEPS.format(clip=clip)


def _gpt(model: str, optimizer: str, context: str = "") -> str:
    made = f"model = {model}\noptimizer = torch.optim.{optimizer}\n"
    return _HEAD + _GPT + made + _GPT_STEPS.format(context=context)


GPT_HEAD = _HEAD + _GPT
PROGRAMS: dict[str, str] = {
    "SGD": _mlp("SGD(model.parameters(), lr=0.1)"),
    "momentum": _mlp("SGD(model.parameters(), lr=0.1, momentum=0.9)"),
    "Adam": _mlp("Adam(model.parameters())"),
    "AdamW foreach": _mlp("AdamW(model.parameters(), foreach=True)"),
    "AdamW for-loop": _mlp("AdamW(model.parameters(), foreach=False)"),
    "AdamW fused": _mlp("AdamW(model.parameters(), fused=True)"),
    "Adagrad": _mlp("Adagrad(model.parameters())"),
    "RMSprop": _mlp("RMSprop(model.parameters(), momentum=0.9)"),
    "clipping": _mlp("AdamW(model.parameters())", "nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n    "),
    "GPT, tied": _gpt("GPT()", "AdamW(model.parameters())"),
    "GPT, SGD": _gpt("GPT(vocabulary=20, layers=4)", "SGD(model.parameters(), lr=0.1)"),
    "GPT, checkpointed": _gpt("GPT(vocabulary=20, recomputes=(0, 1, 2))", "AdamW(model.parameters())"),
    "GPT, one block checkpointed": _gpt("GPT(vocabulary=20, recomputes=(1,))", "AdamW(model.parameters())"),
    "GPT, autocast": _gpt("GPT()", "AdamW(model.parameters())", _AUTOCAST),
    "GPT, autocast and checkpointed": _gpt(
        "GPT(width=128, length=48, vocabulary=20, recomputes=(0, 1, 2))", "AdamW(model.parameters(), fused=True)",
        _AUTOCAST),
    "accumulation": _HEAD + _MLP + """
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    for _ in range(3):
        x, target = torch.randn(16, 24), torch.randint(7, (16,))
        loss = F.cross_entropy(model(x), target) / 3
        loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
""",
    "zeroed in place": _HEAD + _MLP + """
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    optimizer.zero_grad(set_to_none=False)
    F.cross_entropy(model(torch.randn(16, 24)), torch.randint(7, (16,))).backward()
    optimizer.step()
""",
    "LSTM": _HEAD + """
class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.rnn = nn.LSTM(16, 24, 2, batch_first=True)
        self.head = nn.Linear(24, 5)

    def forward(self, words):
        return self.head(self.rnn(self.embed(words))[0])


model = Tagger()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(2):
    words, tags = torch.randint(50, (6, 10)), torch.randint(5, (60,))
    loss = F.cross_entropy(model(words).flatten(0, 1), tags)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
""",
    "closure": _HEAD + _MLP + """
x, target = torch.randn(16, 24), torch.randint(7, (16,))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def closure():
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), target)
    loss.backward()
    return loss
for _ in range(2):
    optimizer.step(closure)
""",
    "loss is read": _mlp("AdamW(model.parameters())").rstrip() + "\n    total = loss.item()\n",
    "moving average": _HEAD + _MLP + """
import copy
average = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    loss = F.cross_entropy(model(torch.randn(16, 24)), torch.randint(7, (16,)))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    with torch.no_grad():
        for old, new in zip(average.parameters(), model.parameters()):
            old.lerp_(new, 0.1)
""",
    "copied layers": _HEAD + """
layer = nn.TransformerEncoderLayer(24, 4, 40, batch_first=True)
model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    model(torch.randn(2, 5, 24)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
""",
    "gradients that meet": _HEAD + """
weight = nn.Parameter(torch.randn(500, 8))
optimizer = torch.optim.SGD([weight], lr=0.1)
for _ in range(2):
    loss = sum(F.embedding(torch.randint(500, (3,)), weight).square().sum() for _ in range(4))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
""",
    "gradients that meet and are held": _HEAD + """
weight = nn.Parameter(torch.randn(500, 8))
optimizer = torch.optim.SGD([weight], lr=0.1)
for _ in range(2):
    table = weight * 1
    table.retain_grad()
    parts = [F.embedding(torch.randint(500, (3,)), table.view(500, 8)) for _ in range(4)]
    sum(part.square().sum() for part in parts).backward()
    del table
    optimizer.step()
    optimizer.zero_grad()
""",
    "data loader": _HEAD + _MLP + """
from torch.utils.data import DataLoader, TensorDataset
loader = DataLoader(TensorDataset(torch.randn(32, 24), torch.randint(7, (32,))), batch_size=16, shuffle=True)
optimizer = torch.optim.AdamW(model.parameters())
for x, target in loader:
    optimizer.zero_grad()
    F.cross_entropy(model(x), target).backward()
    optimizer.step()
""",
    "convolutions": _HEAD + """
model = nn.Sequential(
    nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 32, 3, 2), nn.ReLU(),
    nn.ConvTranspose2d(32, 8, 2, 2), nn.Conv2d(8, 8, 3, groups=8), nn.Flatten(1), nn.Linear(8 * 12 * 12, 7))
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    loss = F.cross_entropy(model(torch.randn(4, 3, 16, 16)), torch.randint(7, (4,)))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
""",
    "products in half precision": _HEAD + """
layer = nn.Linear(96, 96, dtype=torch.bfloat16)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
for _ in range(2):
    x = layer(torch.randn(4, 64, 96).bfloat16())
    mixed = F.scaled_dot_product_attention(*[x.view(4, 64, 4, 24).transpose(1, 2)] * 3, attn_mask=torch.ones(64, 64))
    weights = torch.baddbmm(torch.ones(64, 64).bfloat16(), x, x.mT).softmax(-1)
    (torch.bmm(weights, x).sum() + mixed.sum()).backward()
    optimizer.step()
    optimizer.zero_grad()
""",
    "resized by hand": _HEAD + _MLP + """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
gathered = torch.empty(5000)
for _ in range(2):
    gathered.untyped_storage().resize_(20000)
    loss = F.cross_entropy(model(torch.randn(16, 24)), torch.randint(7, (16,)))
    gathered.untyped_storage().resize_(0)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
""",
    "sparse products": _HEAD + """
rows, shifts = torch.arange(200).repeat(5), torch.arange(5).repeat_interleave(200)
graph = torch.sparse_coo_tensor(torch.stack((rows, (rows * 7 + shifts) % 200)), torch.rand(1000), (200, 200)).coalesce()
first, second, third = (nn.Linear(24, 24) for _ in range(3))
optimizer = torch.optim.Adam([*first.parameters(), *second.parameters(), *third.parameters()])
for _ in range(2):
    x = F.relu(torch.spmm(graph, first(torch.randn(200, 24))))
    x = F.relu(torch.sparse.mm(graph * 2, second(x)))
    torch.sparse.addmm(torch.zeros(200, 24), graph, third(x)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
""",
    "sparse gradients": _HEAD + """
bag, head = nn.EmbeddingBag(50, 6, mode="mean", sparse=True), nn.Linear(6, 3)
optimizers = torch.optim.SparseAdam(bag.parameters(), lr=1e-2), torch.optim.SGD(head.parameters(), lr=1e-2)
for _ in range(2):
    words = torch.randperm(50)[:12]
    F.cross_entropy(head(bag(words, torch.tensor([0, 3, 4, 9]))), torch.randint(0, 3, (4,))).backward()
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad()
""",
    "copied with gradients": _HEAD + _MLP + """
import copy
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    F.cross_entropy(model(torch.randn(2, 24)), torch.randint(7, (2,))).backward()
    optimizer.step()
    best = copy.deepcopy(model)
    optimizer.zero_grad()
""",
}  # fmt: skip
MEASURED = ("Adam", "AdamW foreach", "GPT, tied", "GPT, checkpointed", "accumulation", "gradients that meet", "LSTM",
            "convolutions")  # fmt: skip
