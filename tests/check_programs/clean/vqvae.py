"""VQ-VAE: argmin has no gradient; the straight-through copy, codebook and commitment losses stand in for it."""

import torch
import torch.nn.functional as F
from torch import nn


class VectorQuantizer(nn.Module):
    def __init__(self, codes, dim, beta=0.25):
        super().__init__()
        self.embedding = nn.Embedding(codes, dim)
        self.embedding.weight.data.uniform_(-1 / codes, 1 / codes)
        self.beta = beta

    def forward(self, z):
        indices = torch.cdist(z, self.embedding.weight).argmin(-1)
        quantized = self.embedding(indices)
        codebook_loss = F.mse_loss(quantized, z.detach())
        commitment_loss = F.mse_loss(z, quantized.detach())
        quantized = z + (quantized - z).detach()
        return quantized, codebook_loss + self.beta * commitment_loss, indices


torch.manual_seed(0)
encoder, decoder, vq = nn.Linear(6, 3), nn.Linear(3, 6), VectorQuantizer(8, 3)
params = [*encoder.parameters(), *decoder.parameters(), *vq.parameters()]
optimizer = torch.optim.Adam(params, lr=1e-2)
for _ in range(3):
    x = torch.randn(20, 6)
    quantized, vq_loss, indices = vq(encoder(x))
    loss = F.mse_loss(decoder(quantized), x) + vq_loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex(), indices.unique().numel())
