"""A loss on the spectrum: complex in the middle, real at the end, with an eps inside the root of the magnitude."""

import torch
from torch import nn

torch.manual_seed(0)


def log_magnitude(signal, eps=1e-6):
    spectrum = torch.fft.rfft(signal, dim=-1)
    return 0.5 * torch.log(spectrum.real**2 + spectrum.imag**2 + eps)


class LearnedFilter(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.n = n
        self.gain = nn.Parameter(torch.randn(n // 2 + 1, dtype=torch.cfloat) * 0.1 + 1)

    def forward(self, x):
        return torch.fft.irfft(torch.fft.rfft(x) * self.gain, n=self.n)


model = LearnedFilter(32)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
time = torch.arange(32) / 32
clean = torch.sin(2 * torch.pi * 3 * time).repeat(4, 1)
for _ in range(3):
    restored = model(clean + 0.3 * torch.randn(4, 32))
    loss = (restored - clean).abs().mean() + 0.1 * (log_magnitude(restored) - log_magnitude(clean)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
