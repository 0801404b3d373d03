# expect: GI001
# why: weight.grad is None: no backward call has left a gradient there.
# advice: Call backward() of the loss before none_before_backward.py:16, or skip weight there while weight.grad is None.
# lines: failed=16
import torch

torch.manual_seed(0)
x = torch.randn(20, 3)
y = x.sum(1)
weight, history = torch.zeros(3, requires_grad=True), []
for _ in range(5):
    loss = (x @ weight - y).square().mean()
    history.append(loss.item())
    loss.backward()  # +
    with torch.no_grad():
        weight -= 0.1 * weight.grad
        weight.grad = None
    loss.backward()  # -
print("loss", history[0], history[-1])
