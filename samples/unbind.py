"""An operation with several outputs: the edge of the second one says `input_nr` 1.

Try: gradinspect trace samples/unbind.py
"""

import torch

pair = torch.tensor([2.0, 5.0], requires_grad=True)
first, second = pair.unbind()
product = first * second

for node, input_nr in product.grad_fn.next_functions:
    print(node.name(), "input_nr", input_nr)
product.backward()
print("gradient:", pair.grad.tolist())
