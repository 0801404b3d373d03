"""A contractive autoencoder: the Jacobian of the code is built row by row from a graph that is kept on purpose."""

import torch
from torch import nn

torch.manual_seed(0)
encoder, decoder = nn.Sequential(nn.Linear(5, 3), nn.Sigmoid()), nn.Linear(3, 5)
optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1)


def jacobian(outputs, inputs):
    rows = []
    for i in range(outputs.shape[1]):
        (row,) = torch.autograd.grad(outputs[:, i].sum(), inputs, create_graph=True)
        rows.append(row)
    return torch.stack(rows, 1)


for _ in range(3):
    x = torch.randn(6, 5, requires_grad=True)
    code = encoder(x)
    J = jacobian(code, x)
    loss = (decoder(code) - x.detach()).pow(2).mean() + 0.1 * J.pow(2).sum((1, 2)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
