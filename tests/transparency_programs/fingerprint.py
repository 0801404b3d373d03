"""Print what a tool that only looks must leave as it is: gradients and random numbers bit for bit, tensors alive."""

import gc
import hashlib
import random

import torch

random.seed(0)  # so that its state tells of every draw


def leaves(holder):
    return list(holder.parameters()) if isinstance(holder, torch.nn.Module) else [holder]


def content(tensor):
    plain = tensor.detach().to_dense() if tensor.layout is not torch.strided else tensor.detach()
    plain = plain.float() if plain.dtype is torch.bfloat16 else plain
    return plain.resolve_conj().contiguous().numpy().tobytes()


def show(*holders):
    digest = hashlib.sha256()
    count = 0
    for holder in holders:
        for leaf in leaves(holder):
            for tensor in (leaf, leaf.grad):
                digest.update(b"none" if tensor is None else content(tensor))
            count += leaf.grad is not None
    print(f"{count} gradients, {digest.hexdigest()[:16]}")
    states = torch.get_rng_state().numpy().tobytes() + repr(random.getstate()).encode()
    print(f"random state {hashlib.sha256(states).hexdigest()[:16]}")


def alive():
    """Count tensors. A gradient counts in Python only once it was looked at, so each is looked at first."""
    gc.collect()
    looked_at = [item.grad for item in gc.get_objects() if issubclass(type(item), torch.Tensor) and item.is_leaf]
    del looked_at
    return sum(issubclass(type(item), torch.Tensor) for item in gc.get_objects())
