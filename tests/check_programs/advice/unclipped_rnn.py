# expect: GI364
# advice: Clip between backward at unclipped_rnn.py:31 and the step at unclipped_rnn.py:34.
import torch
from torch import nn

STEPS = 12


def sums(count):
    values, marks = torch.rand(count, STEPS), torch.zeros(count, STEPS)
    for row in marks:
        row[torch.randperm(STEPS)[:2]] = 1
    return torch.stack([values, marks], 2), (values * marks).sum(1, keepdim=True)


torch.manual_seed(9)
rnn, last = nn.RNN(2, 48, nonlinearity="relu", batch_first=True), nn.Linear(48, 1)
with torch.no_grad():
    rnn.weight_hh_l0.copy_(1.1 * torch.eye(48))
weights = [*rnn.parameters(), *last.parameters()]
optimizer = torch.optim.SGD(weights, lr=0.03, momentum=0.9)
losses = []
for _ in range(100):
    x, y = sums(32)
    out, _ = rnn(x)
    loss = nn.functional.mse_loss(last(out[:, -1]), y)

    optimizer.zero_grad()

    # fmt: off
    loss.backward()
    nn.utils.clip_grad_norm_(weights, max_norm=0.5)  # +
    # fmt: on
    optimizer.step()
    nn.utils.clip_grad_norm_(weights, max_norm=0.5)  # -
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
