# expect: GI325
# why: targets of ctc_loss are 0, which is its blank
# advice: Count the classes from 1, with one more of them, or pass another blank at blank_among_the_letters.py:20.
# lines: ignored=20
import torch
from torch import nn

torch.manual_seed(0)
letters, history = 4, []
columns = letters  # -
columns = letters + 1  # +
model = nn.Linear(8, columns)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
x, spoken = torch.randn(12, 5, 8), torch.randint(letters, (5, 4))
lengths = torch.full((5,), 12), torch.full((5,), 4)
for _ in range(8):
    scores = model(x).log_softmax(2)
    targets = spoken  # -
    targets = spoken + 1  # +
    loss = nn.functional.ctc_loss(scores, targets, *lengths)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
