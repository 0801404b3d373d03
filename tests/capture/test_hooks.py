"""Hooks are found and none is added."""

from typing import Any

import torch

from gradinspect.capture.hooks import hook_reader, tensor_hooks
from gradinspect.graph import Hook


def halve(*grads: Any) -> None:
    """Do nothing, under a name."""


def test_hooks_of_a_node_are_listed_by_kind_and_name() -> None:
    """Pre and post hooks are told apart."""
    node = (torch.ones(2, requires_grad=True) * 2).grad_fn
    assert node is not None
    node.register_prehook(halve)
    node.register_hook(lambda *grads: None)
    with hook_reader() as reader:
        assert reader is not None
        hooks = reader.node_hooks(node)

    assert hooks[0] == Hook(kind="pre", name="halve")
    assert hooks[1].kind == "post"
    assert len(hooks) == 2


def test_asking_registers_nothing() -> None:
    """A node without hooks still has none after it was asked, and registration works as before."""
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    assert y.grad_fn is not None
    seen: list[float] = []
    x.register_hook(lambda grad: None).remove()  # some hook existed once, so nodes are asked
    for _ in range(2):
        with hook_reader() as reader:
            assert reader is not None
            assert reader.node_hooks(y.grad_fn) == ()
    y.grad_fn.register_prehook(lambda grads: seen.append(float(grads[0].sum())))
    y.sum().backward()

    assert seen == [2.0]


def test_hooks_of_a_leaf_are_its_tensors() -> None:
    """`Tensor.register_hook` and `register_post_accumulate_grad_hook` show at the leaf."""
    x = torch.ones(2, requires_grad=True)
    x.register_hook(halve)
    x.register_post_accumulate_grad_hook(halve)

    assert [hook.kind for hook in tensor_hooks(x)] == ["tensor", "post_accumulate_grad"]
