import fingerprint
import torch
from torch.autograd.function import once_differentiable

log = []


class Cube(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, scale):
        log.append("forward")
        return x**3 * scale, x.sign()

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.scale = inputs
        log.append("setup_context")
        ctx.save_for_backward(x)
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, gradient, _sign):
        log.append(f"backward {ctx.needs_input_grad} {gradient is None}")
        if gradient is None:
            return None, None
        (x,) = ctx.saved_tensors
        return gradient * 3 * x**2 * ctx.scale, None


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        ctx.kept = torch.ones(2)
        return x.mul_(2)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        log.append(f"double {ctx.kept.sum().item()} {len(ctx.saved_tensors)}")
        return gradient * 2


x = torch.arange(1.0, 4.0, requires_grad=True)
for _ in range(3):
    cubed, sign = Cube.apply(x, 2.0)
    Double.apply(cubed.clone()).sum().backward()
print(torch.func.vmap(lambda v: Cube.apply(v, 1.0)[0])(torch.ones(2, 3)).tolist())
(g,) = torch.autograd.grad(Cube.apply(x, 1.0)[0].sum(), x, create_graph=True)
g.sum().backward()
try:
    (g,) = torch.autograd.grad(Double.apply(x * 1).sum(), x, create_graph=True)
    g.sum().backward()
except RuntimeError as error:
    print(error)
print(torch.autograd.gradcheck(lambda v: Cube.apply(v, 1.5)[0], torch.randn(3, dtype=torch.double, requires_grad=True)))
print(len(log), *log)
fingerprint.show(x)
