"""Programs that keep memory for backward in every way there is, small enough to run in a second. Each returns a loss.

They are built inside the call, so that they can be run plain, with hooks, and on fake tensors.
"""

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


class Bottleneck(nn.Module):
    """A block of ResNet-50."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.reduce, self.norm1 = nn.Conv2d(width, inner, 1, bias=False), nn.BatchNorm2d(inner)
        self.conv, self.norm2 = nn.Conv2d(inner, inner, 3, padding=1, bias=False), nn.BatchNorm2d(inner)
        self.expand, self.norm3 = nn.Conv2d(inner, width, 1, bias=False), nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.relu(self.norm1(self.reduce(x)))
        y = self.relu(self.norm2(self.conv(y)))
        return self.relu(self.norm3(self.expand(y)) + x)


class Block(nn.Module):
    """A block of GPT-2."""

    def __init__(self, width: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.drop = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.attn(self.ln_1(x)).view(batch, length, 3, self.heads, width // self.heads).unbind(2)
        query, key, value = (part.transpose(1, 2) for part in parts)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.drop(self.proj(mixed.transpose(1, 2).reshape(batch, length, width)))
        return x + self.drop(self.mlp(self.ln_2(x)))


class Square(torch.autograd.Function):
    """Saves its input and its output."""

    @staticmethod
    def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
        y = x * x
        ctx.save_for_backward(x, y)  # type: ignore[attr-defined]
        return y

    @staticmethod
    def backward(ctx: object, grad: torch.Tensor) -> torch.Tensor:
        x, _ = ctx.saved_tensors  # type: ignore[attr-defined]
        return 2 * x * grad


def mlp() -> torch.Tensor:
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 4))
    return functional.cross_entropy(model(torch.randn(32, 20)), torch.zeros(32, dtype=torch.long))


def resnet(*, training: bool = True) -> torch.Tensor:
    blocks = nn.Sequential(*(Bottleneck(32, 8) for _ in range(16)))
    model = nn.Sequential(nn.Conv2d(3, 32, 7, 2, 3), nn.BatchNorm2d(32), nn.MaxPool2d(3, 2, 1), blocks).train(training)
    return model(torch.randn(2, 3, 32, 32)).mean((2, 3)).sum()


def resnet_in_eval() -> torch.Tensor:
    return resnet(training=False)


def gpt2() -> torch.Tensor:
    tokens = torch.zeros(1, 64, dtype=torch.long)
    embed, blocks, norm = nn.Embedding(512, 96), nn.Sequential(*(Block(96, 12) for _ in range(12))), nn.LayerNorm(96)
    head = nn.Linear(96, 512, bias=False)
    head.weight = embed.weight
    logits = head(norm(blocks(embed(tokens))))
    return functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())


def dropout() -> torch.Tensor:
    return Block(32, 4, dropout=0.3)(torch.randn(2, 8, 32)).sum()


def lstm() -> torch.Tensor:
    output, _ = nn.LSTM(8, 16, num_layers=2, bidirectional=True)(torch.randn(10, 2, 8))
    return output.square().sum()


def attention() -> torch.Tensor:
    query, key, value = (torch.randn(2, 4, 16, 8, requires_grad=True) for _ in range(3))
    return functional.scaled_dot_product_attention(query, key, value).sum()


def autocast() -> torch.Tensor:
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 32), nn.Linear(32, 4))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return model(torch.randn(8, 16, requires_grad=True)).float().square().mean()


def custom_function() -> torch.Tensor:
    return Square.apply(Square.apply(nn.Linear(8, 8)(torch.randn(4, 8)))).sum()


def views() -> torch.Tensor:
    big = torch.randn(12, 64, 64)
    weight = torch.randn(4, 64, 64, requires_grad=True)
    product = weight * big[:4] + (weight.exp() * big[4:8]).transpose(0, 1).contiguous().transpose(0, 1)
    first, second = torch.split(product.sigmoid(), 2)
    return (first * second.flip(0)).sum()


def in_place() -> torch.Tensor:
    x = nn.Linear(8, 8)(torch.randn(4, 8))
    x.mul_(torch.full((4, 8), 2.0)).add_(torch.ones(8))
    x[:, 0] = x[:, 2].exp()
    return x.sigmoid_().sum()


def sparse_embedding() -> torch.Tensor:
    return nn.Embedding(100, 16, sparse=True)(torch.arange(40) % 7).tanh().sum()


def frozen() -> torch.Tensor:
    first, middle, last = (
        nn.Linear(8, 16),
        nn.Sequential(nn.Linear(16, 16), nn.LayerNorm(16), nn.ReLU()),
        nn.Linear(16, 1),
    )
    middle.requires_grad_(False)
    return last(middle(first(torch.randn(4, 8)))).sum()


def checkpointed() -> torch.Tensor:
    blocks = [nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 16)) for _ in range(3)]
    x = torch.randn(4, 16)
    for block in blocks:
        x = x + checkpoint(block, x, use_reentrant=False)
    return x.square().sum()


PROGRAMS: dict[str, Callable[[], torch.Tensor]] = {
    program.__name__: program
    for program in (
        mlp, resnet, resnet_in_eval, gpt2, dropout, lstm, attention, autocast, custom_function, views, in_place,
        sparse_embedding, frozen, checkpointed,
    )
}  # fmt: skip
