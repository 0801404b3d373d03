import fingerprint
import torch
from torch import nn

torch.manual_seed(6)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(6, 12), nn.Linear(12, 6)

    def forward(self, x):
        return x + self.second(torch.nn.functional.gelu(self.first(x)))


block = Block()
example = torch.randn(2, 6)
traced = torch.jit.trace(block, example)
for _ in range(3):
    loss = traced(torch.randn(5, 6)).square().mean()
    loss.backward()
print([node.kind() for node in traced.graph.nodes()])
again = torch.jit.trace(lambda v: (v * 2).relu().sum(), (torch.randn(3, requires_grad=True),))
print(again.graph.str().count("aten::"))
fingerprint.show(block)
