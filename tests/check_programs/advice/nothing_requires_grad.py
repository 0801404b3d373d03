# expect: GI302
# advice: Create what should be learned with requires_grad=True, or as an nn.Parameter.
# lines: backward=13 made=12
import torch

torch.manual_seed(0)
x = torch.randn(32, 3)
y, losses = x.sum(1), []
weight = torch.zeros(3)  # -
weight = torch.zeros(3, requires_grad=True)  # +
for _ in range(20):
    loss = (x @ weight - y).square().mean()
    loss.backward()
    with torch.no_grad():
        weight -= 0.1 * weight.grad
    weight.grad = None
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
