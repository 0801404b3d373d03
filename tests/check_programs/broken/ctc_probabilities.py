"""A recognizer passes probabilities to CTC, which adds up exponentials of what it gets."""

import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.Linear(5, 6)
ctc = nn.CTCLoss(blank=0)
for _ in range(2):
    frames = torch.randn(12, 2, 5)
    probs = encoder(frames).softmax(2)
    loss = ctc(probs, torch.randint(1, 6, (2, 4)), torch.full((2,), 12), torch.full((2,), 4))
    loss.backward()
# expect: GI352 applied=11 loss=12 backward=13
