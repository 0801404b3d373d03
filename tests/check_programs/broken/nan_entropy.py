"""The logarithm of a probability that has become exactly zero."""

import torch

logits = torch.tensor([[1000.0, 0.0]], requires_grad=True)
p = torch.softmax(logits, -1)
surprise = p.log()
loss = -(p * surprise).sum()
loss.backward()
# expect: GI502 made=7 backward=9
