# expect: GI101
# advice: Write to a copy at element_of_a_list_in_place.py:22: clone() the tensor first.
# lines: backward=27 saved=21 written=22
import torch
from torch import nn

torch.manual_seed(0)
layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))
optimizer = torch.optim.SGD(layers.parameters(), lr=0.05)
x, y = torch.randn(8, 3), torch.rand(8, 3)


def last_of(states):
    return states[-1]


losses = []
for _ in range(30):
    states = [x]
    for layer in layers:
        states.append(torch.tanh(layer(states[-1])))
    last_of(states)[:, 0].zero_()  # -
    states[-1] = last_of(states).clone()  # +
    states[-1][:, 0].zero_()  # +
    loss = (states[-1] - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
