"""Vector quantization: gradients pass the quantizer by a straight-through estimator."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
encoder, codebook, decoder = nn.Linear(6, 4), nn.Embedding(8, 4), nn.Linear(4, 6)
optimizer = torch.optim.Adam([*encoder.parameters(), *codebook.parameters(), *decoder.parameters()])
for _ in range(3):
    x = torch.randn(5, 6)
    z = encoder(x)
    quantized = codebook(torch.cdist(z, codebook.weight).argmin(1))
    straight = z + (quantized - z).detach()
    loss = F.mse_loss(decoder(straight), x) + F.mse_loss(quantized, z.detach()) + F.mse_loss(z, quantized.detach()) / 4
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
