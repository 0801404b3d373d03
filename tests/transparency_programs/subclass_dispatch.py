import fingerprint
import torch
from torch import nn
from torch.utils._pytree import tree_map

calls = []


class Wrapped(torch.Tensor):
    """Unwraps itself, computes, wraps again: how quantized and sharded tensors are written."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(
            cls, inner.size(), dtype=inner.dtype, device=inner.device, requires_grad=inner.requires_grad
        )

    def __init__(self, inner):
        self.inner = inner.detach()

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        calls.append(str(func))
        args, kwargs = tree_map(lambda v: v.inner if isinstance(v, cls) else v, (args, kwargs or {}))
        result = func(*args, **kwargs)
        return tree_map(lambda v: cls(v) if isinstance(v, torch.Tensor) else v, result)

    __torch_function__ = torch._C._disabled_torch_function_impl


class Same(torch.Tensor):
    """Rewraps the same data without a wrapper."""

    @staticmethod
    def __new__(cls, data):
        return torch.Tensor._make_subclass(cls, data, data.requires_grad)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        calls.append(f"same {func}")

        def unwrap(value):
            return value.as_subclass(torch.Tensor) if isinstance(value, cls) else value

        with torch._C._DisableTorchDispatch():
            args, kwargs = tree_map(unwrap, (args, kwargs or {}))
            result = func(*args, **kwargs)
        return tree_map(lambda v: cls(v) if isinstance(v, torch.Tensor) else v, result)


torch.manual_seed(13)
weight = nn.Parameter(Wrapped(torch.randn(3, 3)))
for _ in range(3):
    x = Wrapped(torch.randn(2, 3))
    loss = (x @ weight).tanh().sum()
    loss.backward()
    print(type(loss).__name__, type(weight.grad).__name__, len(calls), *calls)
    calls.clear()
print(weight.grad.inner.tolist())
other = Same(torch.randn(3)).requires_grad_()
for _ in range(2):
    (other * 2).exp().sum().backward()
    print(len(calls), *calls)
    calls.clear()
with torch._C._DisableTorchDispatch():
    print(other.grad.as_subclass(torch.Tensor).numpy())
fingerprint.show()
