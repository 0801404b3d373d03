"""Six models of different kinds, and what a training step may have, for `fit.py`.

`python step_models.py GPT AdamW fused autocast EMA` trains one.
"""

import sys
from functools import partial
from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, width, heads, drop=0.1, mlp=None):
        super().__init__()
        self.heads, self.drop = heads, drop
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = mlp or nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def attend(self, x):
        batch, length, width = x.shape
        parts = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(*parts)
        return self.project(mixed.transpose(1, 2).reshape(batch, length, width))

    def forward(self, x):
        x = x + F.dropout(self.attend(self.before(x)), self.drop, self.training)
        return x + F.dropout(self.mlp(self.between(x)), self.drop, self.training)


class GPT(nn.Module):
    def __init__(self, layers=6, width=128, vocabulary=500):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, 4) for _ in range(layers))
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(x).flatten(0, 1), tokens.flatten())


class Experts(nn.Module):
    """A mixture without routing by values: each expert sees all tokens, weighted."""

    def __init__(self, width, number=4):
        super().__init__()
        self.gate = nn.Linear(width, number)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)) for _ in range(number)
        )

    def forward(self, x):
        weights = self.gate(x).softmax(-1)
        return sum(weights[..., n : n + 1] * expert(x) for n, expert in enumerate(self.experts))


class MoE(GPT):
    def __init__(self):
        super().__init__(layers=0)
        self.blocks = nn.ModuleList(Block(128, 4, mlp=Experts(128)) for _ in range(4))


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 96, 8, 8)
        self.blocks = nn.Sequential(*(Block(96, 4) for _ in range(6)))
        self.head = nn.Linear(96, 10)

    def forward(self, images):
        return self.head(self.blocks(self.patches(images).flatten(2).transpose(1, 2)).mean(1)).logsumexp(1).mean()


class Residual(nn.Module):
    def __init__(self, wide, out, stride=1):
        super().__init__()
        self.first, self.norm = nn.Conv2d(wide, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)
        self.second, self.last = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
        self.skip = nn.Conv2d(wide, out, 1, stride, bias=False) if stride > 1 else nn.Identity()

    def forward(self, x):
        return F.relu(self.last(self.second(F.relu(self.norm(self.first(x))))) + self.skip(x))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 32, 3, 1, 1)
        self.layers = nn.Sequential(
            Residual(32, 32), Residual(32, 32), Residual(32, 64, 2), Residual(64, 64), Residual(64, 128, 2)
        )
        self.head = nn.Linear(128, 10)

    def forward(self, images):
        return self.head(self.layers(self.stem(images)).mean((2, 3))).logsumexp(1).mean()


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        widths = (3, 16, 32, 64)
        self.down = nn.ModuleList(self.pair(a, b) for a, b in pairwise(widths))
        self.up = nn.ModuleList(self.pair(a + b, a) for a, b in ((32, 64), (16, 32)))
        self.last = nn.Conv2d(16, 1, 1)

    @staticmethod
    def pair(wide, out):
        return nn.Sequential(nn.Conv2d(wide, out, 3, 1, 1), nn.ReLU(), nn.Conv2d(out, out, 3, 1, 1), nn.ReLU())

    def forward(self, x):
        kept = []
        for number, level in enumerate(self.down):
            x = level(F.max_pool2d(x, 2) if number else x)
            kept.append(x)
        for level, beside in zip(self.up, kept[-2::-1], strict=True):
            x = level(torch.cat([F.interpolate(x, scale_factor=2), beside], 1))
        return self.last(x).square().mean()


class LSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(500, 128)
        self.layers = nn.ModuleList(nn.LSTM(128, 128, batch_first=True) for _ in range(3))
        self.head = nn.Linear(128, 500)

    def forward(self, tokens):
        x = self.tokens(tokens)
        for layer in self.layers:
            x = layer(x)[0]
        return F.cross_entropy(self.head(x).flatten(0, 1), tokens.flatten())


def tokens():
    return torch.randint(500, (8, 128))


def images():
    return torch.randn(8, 3, 64, 64)


MODELS = {
    "GPT": (GPT, tokens), "MoE": (MoE, tokens), "LSTM": (LSTM, tokens),
    "ViT": (ViT, images), "ResNet": (ResNet, images), "UNet": (UNet, images),
}  # fmt: skip
OPTIMIZERS = {
    "SGD": partial(torch.optim.SGD, lr=0.01), "momentum": partial(torch.optim.SGD, lr=0.01, momentum=0.9),
    "Adam": torch.optim.Adam, "AdamW": torch.optim.AdamW,
}  # fmt: skip
LOOPS = {"for-loop": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}
FEATURES = ("autocast", "accumulation", "clipping", "EMA", "checkpointing")
NUM_PARTS = 2  # batches of a step, with accumulation


class Training:
    """A model, its optimizer, and what belongs to a step."""

    def __init__(self, name, optimizer="AdamW", loop="foreach", *features, device="cpu"):
        if unknown := {*features} - {*FEATURES}:
            raise SystemExit(f"unknown: {', '.join(sorted(unknown))}")
        torch.manual_seed(0)
        make_model, self.make_input = MODELS[name]
        self.features = features
        self.device = torch.device(device)
        self.model = make_model()
        if self.device.type != "cpu":  # `to` cannot swap the tensors of a model on fake tensors
            self.model.to(self.device)
        self.optimizer = OPTIMIZERS[optimizer](self.model.parameters(), **LOOPS[loop])
        self.average = AveragedModel(self.model, multi_avg_fn=get_ema_multi_avg_fn(0.99)) if "EMA" in features else None
        if "checkpointing" in features:
            checkpoint_repeated(self.model)

    def step(self):
        for _ in range(NUM_PARTS if "accumulation" in self.features else 1):
            with torch.autocast(self.device.type, torch.bfloat16, enabled="autocast" in self.features):
                loss = self.model(self.make_input().to(self.device))
            loss.backward()
        if "clipping" in self.features:
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        if self.average is not None:
            self.average.update_parameters(self.model)


def checkpoint_repeated(model):
    """Checkpoint each module of the lists of modules that the model consists of."""
    for part in model.children():
        for block in part if isinstance(part, nn.ModuleList | nn.Sequential) else ():
            block.forward = partial(checkpoint, block.forward, use_reentrant=False)


if __name__ == "__main__":
    training = Training(*sys.argv[1:])
    for _ in range(3):
        training.step()
