"""A decoder with the shape of Llama-3-70B at 8,192 tokens: run it on fake tensors only.

    gradinspect memory --fake decoder_70b.py
    gradinspect fit decoder_70b.py --world-size 64 -- sharded

`sharded` trains it in two steps of AdamW, in shards with `fully_shard`, each block checkpointed. By hand, a rank of 64
needs 32.44 GiB, where the gradient of the logits is made. Of 70,553,706,496 parameters in bfloat16 it holds a share,
and twice that as the optimizer's state: 3 x 2.053 GiB; the embedding and the head whole: 3.914; what 80 blocks were
given, of 8,192 x 8,192: 10; the log-probabilities, their gradient and that of the logits, of 8,192 x 128,256 in
float32: 3 x 3.914; what the last norm and the head have saved: 0.625. Gradients of parameters are not there yet.
`fit` says 32.4 GiB at that place, after 65 seconds of processor time on a busy machine.
"""

import sys
from functools import partial

import torch
from torch import nn
from torch.distributed import init_process_group
from torch.distributed.fsdp import fully_shard
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


class Attention(nn.Module):
    """Grouped-query attention."""

    def __init__(self, width: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads, width // heads
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, kv_heads * self.size, bias=False)
        self.value = nn.Linear(width, kv_heads * self.size, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run."""
        batch, length, width = x.shape
        query = self.query(x).view(batch, length, self.heads, self.size).transpose(1, 2)
        key = self.key(x).view(batch, length, self.kv_heads, self.size).transpose(1, 2)
        value = self.value(x).view(batch, length, self.kv_heads, self.size).transpose(1, 2)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    """Attention and a gated feed-forward layer."""

    def __init__(self, width: int, heads: int, kv_heads: int, inner: int) -> None:
        super().__init__()
        self.norm1, self.attention = nn.RMSNorm(width), Attention(width, heads, kv_heads)
        self.norm2 = nn.RMSNorm(width)
        self.gate, self.up = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run."""
        x = x + self.attention(self.norm1(x))
        y = self.norm2(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Decoder(nn.Module):
    """Eighty blocks, 8,192 wide, 64 heads with 8 for keys and values."""

    def __init__(self, layers: int = 80, width: int = 8192, tokens: int = 128_256) -> None:
        super().__init__()
        self.embed = nn.Embedding(tokens, width)
        self.layers = nn.ModuleList([Block(width, 64, 8, 28_672) for _ in range(layers)])
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, tokens, bias=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Run."""
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def sharded(model: Decoder) -> Decoder:
    """Shard a model over all ranks, a block at a time; each block is computed again in backward."""
    for layer in model.layers:
        layer.forward = partial(checkpoint, layer.forward, use_reentrant=False)
        fully_shard(layer)
    return fully_shard(model).to_empty(device="cpu")


def loss_of(model: Decoder, ids: torch.Tensor) -> torch.Tensor:
    """Run forward."""
    return functional.cross_entropy(model(ids).flatten(0, 1).float(), ids.flatten())


def main() -> None:
    """Run backward once, or train."""
    torch.set_default_dtype(torch.bfloat16)
    ids = torch.zeros(1, 8192, dtype=torch.long)
    if "sharded" not in sys.argv:
        loss_of(Decoder(), ids).backward()
        return
    init_process_group("gloo")
    with torch.device("meta"):
        model = Decoder()
    model = sharded(model)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        loss_of(model, ids).backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
