# expect: GI352
# why: the output of linear as its first argument
# advice: Apply log_softmax to the first argument at kl_of_logits.py:15
# lines: loss=15 backward=18
import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
student, teacher = nn.Linear(6, 3), nn.Linear(6, 3).requires_grad_(False)
optimizer = torch.optim.SGD(student.parameters(), lr=0.5)
x = torch.randn(16, 6)
history = []
for _ in range(6):
    loss = functional.kl_div(student(x), teacher(x).softmax(1), reduction="batchmean")  # -
    loss = functional.kl_div(student(x).log_softmax(1), teacher(x).softmax(1), reduction="batchmean")  # +
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
