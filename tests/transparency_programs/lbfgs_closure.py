import fingerprint
import torch

torch.manual_seed(32)
w = torch.tensor([-1.2, 1.0], requires_grad=True)
optimizer = torch.optim.LBFGS([w], max_iter=8, line_search_fn="strong_wolfe")
calls = 0


def closure():
    global calls
    calls += 1
    optimizer.zero_grad()
    loss = (1 - w[0]) ** 2 + 100 * (w[1] - w[0] ** 2) ** 2
    loss.backward()
    return loss


for _ in range(3):
    print(f"{optimizer.step(closure).item():.9f}", calls)
fingerprint.show(w)
