# expect: GI361
# why: image is a new tensor since optimized_image_rebound.py:21, and optimizer still holds the one
# advice: At optimized_image_rebound.py:21, write the new values into the tensor that optimizer holds, under
# lines: optimizer=12 replaced=21 backward=18
import torch
from torch import nn

torch.manual_seed(0)
network = nn.Sequential(nn.Linear(16, 8), nn.Tanh(), nn.Linear(8, 3))
network.requires_grad_(False)
image = torch.rand(1, 16, requires_grad=True)
optimizer = torch.optim.Adam([image], lr=0.05)
losses = []
target = torch.tensor([[1.0, -1.0, 0.5]])
for _ in range(20):
    optimizer.zero_grad()
    loss = (network(image) - target).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    image = image.detach().clamp(0, 1).requires_grad_()  # -
    with torch.no_grad():  # +
        image.copy_(image.clamp(0, 1))  # +
print("loss", losses[0], losses[-1])
