# expect: GI312
# why: look i up when they are called, after the loop: all of them find its last value
# advice: At functions_of_a_loop.py:11, keep the value for each function, as a default: i=i.
# lines: made=11 backward=18 step=19
import torch

torch.manual_seed(0)
count, history = 3, []
weights = [torch.zeros(4, requires_grad=True) for _ in range(count)]
optimizer = torch.optim.Adam(weights, lr=0.1)
scales = [lambda x: x * weights[i] for i in range(count)]  # noqa: B023 # -
scales = [lambda x, i=i: x * weights[i] for i in range(count)]  # +
x = torch.randn(32, 4)
y = torch.stack([x, 2 * x, 3 * x])
for _ in range(8):
    loss = (torch.stack([scale(x) for scale in scales]) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
