# expect: GI001
# advice: Add a small multiple of the identity before, such as 1e-4 * torch.eye(n), so that no eigenvalue is 0 or
# advice: less.
import torch
from torch import nn

torch.manual_seed(0)
factor = nn.Parameter(torch.randn(4, 1))
optimizer = torch.optim.Adam([factor], lr=0.05)
history = []
for _ in range(30):
    matrix = factor @ factor.T
    matrix = matrix + 1e-4 * torch.eye(4)  # +
    lower = torch.linalg.cholesky(matrix)
    loss = lower.diagonal().log().sum().square()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
