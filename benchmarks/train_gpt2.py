"""Training steps of a 12-layer transformer; the last line has the CPU seconds of each step: `train_gpt2.py STEPS`."""

import sys
import time

import graphs
import torch

torch.manual_seed(0)
torch.set_num_threads(1)
model = graphs.GPT2()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
seconds = []
for _ in range(int(sys.argv[1])):
    start = time.process_time()
    tokens = torch.randint(0, 50_257, (1, 128))
    loss = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.roll(-1).flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    seconds.append(round(time.process_time() - start, 4))
print(*seconds)
