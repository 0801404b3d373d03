# expect: GI001
# advice: At lengths_in_a_column.py:12, pass one length for each sequence, on the CPU: lengths.flatten().cpu().
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

torch.manual_seed(0)
net = nn.GRU(4, 8, batch_first=True)
x = torch.randn(3, 5, 4)
mask = torch.ones(3, 5)
lengths = mask.sum(1, keepdim=True).long()
packed = pack_padded_sequence(x, lengths, batch_first=True)  # -
packed = pack_padded_sequence(x, lengths.flatten().cpu(), batch_first=True)  # +
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = (net(packed)[1].mean(2) - 0.5).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
