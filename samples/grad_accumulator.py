"""Finding a leaf's AccumulateGrad node: a view of the leaf has it as its only next node.

Try: gradinspect trace samples/grad_accumulator.py
"""

import torch

weight = torch.tensor([1.0, -2.0], requires_grad=True)
view = weight.expand_as(weight)
accumulator, _ = view.grad_fn.next_functions[0]

print(accumulator.name(), "of the leaf itself:", accumulator.variable is weight)
