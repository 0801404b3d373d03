# expect: GI001
# advice: At lengths_out_of_order.py:11, pass enforce_sorted=False.
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

torch.manual_seed(0)
rnn = nn.GRU(4, 8, batch_first=True)
x = torch.randn(3, 5, 4)
lengths = torch.tensor([2, 5, 3])
packed = pack_padded_sequence(x, lengths, batch_first=True)  # -
packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)  # +
optimizer = torch.optim.Adam(rnn.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = (rnn(packed)[1].mean(2) - 0.5).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
