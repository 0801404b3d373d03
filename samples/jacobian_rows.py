"""One weight at a time gives the Jacobian row by row; the graph is kept between the rows.

Try: gradinspect trace samples/jacobian_rows.py --backward 3
"""

import torch

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = torch.stack((x[0] * x[1], x[1] * x[2], x.sum()))

rows = []
for weights in torch.eye(3):
    x.grad = None
    y.backward(weights, retain_graph=True)
    rows.append(x.grad)
for row in rows:
    print(row.tolist())
