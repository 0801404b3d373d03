# expect: GI401
# advice: 'with torch.no_grad(): image.copy_(image.clamp(0, 1))'
# never: detach
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2))
model.requires_grad_(False)
image = torch.rand(1, 3, 8, 8, requires_grad=True)
optimizer = torch.optim.Adam([image], lr=0.05)
losses = []
for _ in range(20):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(image), torch.tensor([1]))
    loss.backward()
    optimizer.step()
    image = image.clamp(0, 1)  # -
    with torch.no_grad():  # +
        image.copy_(image.clamp(0, 1))  # +
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
