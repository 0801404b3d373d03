# expect: GI103
# never: Move
# advice: clone()
import torch

torch.manual_seed(0)
w = torch.randn(3, requires_grad=True)
x, y = torch.randn(8, 3), torch.randn(8)
optimizer = torch.optim.SGD([w], lr=0.02)
losses = []
for _ in range(30):
    optimizer.zero_grad()
    # fmt: off
    loss = ((w * w * x).sum(1) - y).square().mean(); w.data.clamp_(max=0.5); loss.backward()  # noqa: E702  # -
    # fmt: on
    held = w.clone()  # +
    loss = ((held * held * x).sum(1) - y).square().mean()  # +
    w.data.clamp_(max=0.5)  # +
    loss.backward()  # +
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
