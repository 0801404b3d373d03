# expect: GI001
# advice: Make it a leaf: compute its first value, and call requires_grad_() on that, or make an nn.Parameter of it.
import torch

torch.manual_seed(0)
w = torch.randn(4, requires_grad=True) * 0.1  # -
w = (torch.randn(4) * 0.1).requires_grad_()  # +
x = torch.randn(32, 4)
optimizer = torch.optim.Adam([w], lr=0.05)
history = []
for _ in range(30):
    loss = (x @ w - x.sum(1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
