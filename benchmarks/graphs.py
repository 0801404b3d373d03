"""The graphs that everything is timed on, each with its model, which users have at hand too."""

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional


def rnn(steps: int) -> tuple[torch.Tensor, None]:
    """Unroll `tanh(h @ W + x)`: three nodes a step, as deep as it is long."""
    weight = torch.randn(8, 8, requires_grad=True)
    hidden, x = torch.zeros(1, 8), torch.randn(1, 8)
    for _ in range(steps):
        hidden = torch.tanh(hidden @ weight + x)
    return hidden.sum(), None


def wide(branches: int) -> tuple[torch.Tensor, None]:
    """Stack many short branches: two nodes each, one node with all of them as inputs."""
    x = torch.randn(4, requires_grad=True)
    return torch.stack([(x * float(branch)).sum() for branch in range(branches)]).sum(), None


class Bottleneck(nn.Module):
    """A ResNet-50 block."""

    def __init__(self, channels: int, inner: int, stride: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for c_in, c_out, size, step in ((channels, inner, 1, 1), (inner, inner, 3, stride), (inner, 4 * inner, 1, 1)):
            layers += [nn.Conv2d(c_in, c_out, size, step, size // 2, bias=False), nn.BatchNorm2d(c_out), nn.ReLU()]
        self.body = nn.Sequential(*layers[:-1])
        self.skip = nn.Identity() if channels == 4 * inner else nn.Conv2d(channels, 4 * inner, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run."""
        return functional.relu(self.body(x) + self.skip(x))


def resnet50() -> tuple[torch.Tensor, nn.Module]:
    """Run a network shaped like ResNet-50 on one small picture."""
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2)]
    channels = 64
    for inner, depth, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(depth):
            layers.append(Bottleneck(channels, inner, stride if block == 0 else 1))
            channels = 4 * inner
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))
    return functional.cross_entropy(model(torch.randn(2, 3, 64, 64)), torch.tensor([1, 2])), model


class Block(nn.Module):
    """A GPT-2 block."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run."""
        batch, length, width = x.shape
        parts = self.attn(self.ln_1(x)).view(batch, length, 3, self.heads, width // self.heads).unbind(2)
        query, key, value = (part.transpose(1, 2) for part in parts)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.proj(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.ln_2(x))


class GPT2(nn.Module):
    """Twelve blocks, 768 wide, twelve heads, 50,257 tokens, weights tied."""

    def __init__(self, width: int = 768, heads: int = 12, layers: int = 12, tokens: int = 50_257) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(tokens, width), nn.Embedding(1024, width)
        self.h = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.ln_f = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, tokens, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Run."""
        return self.lm_head(self.ln_f(self.h(self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1])))))


def gpt2(length: int = 128) -> tuple[torch.Tensor, nn.Module]:
    """Run GPT-2 on one sequence, and compute its loss."""
    tokens = torch.randint(0, 50_257, (1, length))
    model = GPT2()
    return functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()), model


GRAPHS: dict[str, Callable[[], tuple[torch.Tensor, nn.Module | None]]] = {
    "RNN, 5,000 steps": lambda: rnn(5_000),
    "RNN, 50,000 steps": lambda: rnn(50_000),
    "wide, 100,000 nodes": lambda: wide(50_000),
    "ResNet-50": resnet50,
    "GPT-2": gpt2,
}
