import fingerprint
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

torch.manual_seed(43)
lstm = nn.LSTM(3, 5, num_layers=2, batch_first=True, bidirectional=True, dropout=0.2)
cell, head = nn.GRUCell(10, 6), nn.Linear(6, 3)
for step in range(3):
    packed = pack_padded_sequence(torch.randn(4, 7, 3), [7, 5, 3, 2], batch_first=True)
    out, lengths = pad_packed_sequence(lstm(packed)[0], batch_first=True)
    h = torch.zeros(4, 6)
    for time in range(out.shape[1]):
        h = cell(out[:, time], h)
    scores = head(h).log_softmax(1).expand(9, 4, 3)
    loss = nn.functional.ctc_loss(scores, torch.ones(4, 2, dtype=torch.long), torch.full((4,), 9), torch.full((4,), 2))
    loss.backward()
    print(step, f"{loss.item():.9f}")
fingerprint.show(lstm, cell, head)
