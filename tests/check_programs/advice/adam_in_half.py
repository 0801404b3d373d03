# expect: GI502
# why: Its eps, 1e-08, is 0 in float16, so an element with the gradient 0 became 0 / 0.
# advice: Keep the parameters in float32, and let torch.autocast compute in bfloat16, or in float16 with a GradScaler.
# lines: step=24 backward=23
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(8, 4), nn.Linear(4, 8))
model = model.half()  # -
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
words = torch.arange(4)
history = []
for _ in range(8):
    scores = model(words)  # -
    with torch.autocast("cpu", dtype=torch.bfloat16):  # +
        scores = model(words)  # +

    loss = nn.functional.cross_entropy(scores.float(), words + 1)
    history.append(loss.item())

    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", history[0], history[-1])
