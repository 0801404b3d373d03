"""Two ways up, added: a transposed convolution and an interpolation, then a style loss on Gram matrices."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


def gram(features):
    _, c, h, w = features.shape
    return torch.einsum("nchw,ndhw->ncd", features, features) / (c * h * w)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.skip = nn.ConvTranspose2d(4, 3, kernel_size=4, stride=2, padding=1), nn.Conv2d(4, 3, 1)

    def forward(self, z):
        coarse = F.interpolate(self.skip(z), scale_factor=2, mode="bilinear", align_corners=False)
        return torch.tanh(self.up(z) + coarse)


decoder = Decoder()
vgg = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU()).requires_grad_(False).eval()
style = gram(vgg(torch.rand(1, 3, 8, 8))).expand(2, -1, -1)
optimizer = torch.optim.Adam(decoder.parameters(), lr=1e-2)
for _ in range(3):
    picture = decoder(torch.randn(2, 4, 4, 4))
    loss = F.mse_loss(gram(vgg(picture)), style) + 1e-3 * picture.diff(dim=-1).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
