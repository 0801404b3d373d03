import warnings

import fingerprint
import torch
from torch import nn

warnings.simplefilter("ignore")
torch.manual_seed(41)
linear = nn.Linear(4, 4)
optimizer = torch.optim.SGD(linear.parameters(), lr=0.1)


def rows():
    return [torch.randn(2, 4), torch.randn(3, 4)]


for _ in range(3):
    optimizer.zero_grad()
    nested = torch.nested.nested_tensor(rows(), requires_grad=True)
    torch.nested.to_padded_tensor(linear(nested), 0.0).pow(2).sum().backward()
    optimizer.step()
    print([gradient.sum().item() for gradient in nested.grad.unbind()])
for _ in range(3):
    jagged = torch.nested.nested_tensor(rows(), layout=torch.jagged, requires_grad=True)
    linear(jagged).values().pow(2).sum().backward()
    print(jagged.grad.values().sum().item())
fingerprint.show(linear)
