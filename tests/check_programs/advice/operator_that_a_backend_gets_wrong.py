# expect: GI252
# options: --compiled
# advice: Move operator_that_a_backend_gets_wrong.py:31 into a function decorated with @torch.compiler.disable, and
# advice: report the operator to the maintainers of compiler_fn.
# lines: backward=48 operator=31
import torch
from functorch.compile import make_boxed_func
from torch import nn
from torch._dynamo.backends.common import aot_autograd


def wrong(graph, inputs):
    for call in graph.graph.nodes:
        if call.target is torch.ops.aten.tanh.default:
            call.target = torch.ops.aten.sin.default
    graph.recompile()
    return make_boxed_func(graph.forward)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 8), nn.Linear(8, 1)

    @torch.compiler.disable  # +
    def squashed(self, x):  # +
        return torch.tanh(x)  # +

    def forward(self, x):
        h = self.body(x)
        h = torch.tanh(h)  # -
        h = self.squashed(h)  # +
        return self.head(h)


def right(graph, inputs):
    return make_boxed_func(graph.forward)


torch.manual_seed(0)
model = Net()
compiled = torch.compile(model, backend=aot_autograd(fw_compiler=wrong, bw_compiler=right))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, losses = torch.randn(32, 4), []
for _ in range(5):
    loss = (compiled(x) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
