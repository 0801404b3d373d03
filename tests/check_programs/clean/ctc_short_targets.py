"""CTC on padded targets: every input is long enough for its target, so no loss is infinite."""

import torch
from torch import nn

torch.manual_seed(0)
T, N, CLASSES = 14, 3, 6
frames = torch.randn(N, T, 5)
frame_lengths = torch.tensor([14, 12, 9])
targets = torch.tensor([[1, 2, 2, 4], [3, 5, 0, 0], [5, 1, 3, 0]])
target_lengths = torch.tensor([4, 2, 3])


class Recogniser(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(5, 8, batch_first=True, bidirectional=True)
        self.head = nn.Linear(16, CLASSES)

    def forward(self, x):
        out, _ = self.rnn(x)
        return self.head(out).log_softmax(-1).transpose(0, 1)


model = Recogniser()
ctc = nn.CTCLoss(blank=0)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(3):
    optimizer.zero_grad()
    loss = ctc(model(frames), targets, frame_lengths, target_lengths)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    print(loss.item().hex())
