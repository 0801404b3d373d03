# expect: GI305
# advice: requires_grad_()
# never: retain_grad
import torch

torch.manual_seed(0)
w = torch.randn(3, requires_grad=True) * 0.1  # -
w = (torch.randn(3) * 0.1).requires_grad_()  # +
x, y = torch.randn(16, 3), torch.randn(16)
losses = []
for _ in range(20):
    loss = (x @ w - y).square().mean()
    loss.backward(retain_graph=True)
    with torch.no_grad():
        w -= 0.05 * w.grad
    w.grad = None
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
