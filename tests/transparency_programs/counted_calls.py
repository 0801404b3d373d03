"""Every public function of torch and every method of tensors is replaced by one that counts: none of our calls is seen."""

import os
from pathlib import Path

import call_counters
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

call_counters.start()


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * 2 + x * 0


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10, 6, sparse=True)
        self.convolution, self.norm = nn.Conv1d(6, 6, 3, padding=1), nn.BatchNorm1d(6)
        self.lstm, self.out = nn.LSTM(6, 5, batch_first=True), nn.Linear(5, 3)
        self.frozen = nn.Linear(6, 6).requires_grad_(False)
        self.turned = nn.Parameter(torch.ones(3, dtype=torch.complex64))

    def forward(self, tokens):
        hidden = self.embedding(tokens).transpose(1, 2)
        hidden = self.norm(self.convolution(hidden).relu_()).transpose(1, 2)
        hidden = checkpoint(lambda x: torch.tanh(self.frozen(x)), hidden, use_reentrant=False)
        hidden, _ = self.lstm(nn.functional.dropout(hidden, 0.2))
        return self.out(Double.apply(hidden).mean(1)) + (self.turned * self.turned.conj()).real


torch.manual_seed(0)
net = Net()
dense = [parameter for name, parameter in net.named_parameters() if not name.startswith("embedding")]
optimizers = [torch.optim.Adam(dense, lr=0.01), torch.optim.SGD(net.embedding.parameters(), lr=0.1)]
for _ in range(3):
    for optimizer in optimizers:
        optimizer.zero_grad()
    weights = torch.ones(3, requires_grad=True)
    outputs = net(torch.randint(0, 10, (4, 7)))
    loss = nn.functional.cross_entropy(outputs * weights, torch.randint(0, 3, (4,)))
    (gradient,) = torch.autograd.grad(loss, weights, create_graph=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        projected = nn.functional.linear(torch.ones(2, 5), net.out.weight)
    (loss + gradient.pow(2).sum() + projected.float().sum() * 1e-3).backward()
    nn.utils.clip_grad_norm_(dense, 1.0)
    for optimizer in optimizers:
        optimizer.step()
print(call_counters.report(), end="")
if "COUNTS_FILE" in os.environ:  # a verb may print in between
    Path(os.environ["COUNTS_FILE"]).write_text(call_counters.report())
