# expect: GI380
# advice: Keep the parameters in float32, and let torch.autocast compute in bfloat16, or in float16 with a GradScaler.
# why: that had a gradient have stayed the same
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(50, 16), nn.Flatten(), nn.Linear(64, 50))
model.to(torch.bfloat16)  # -
optimizer = torch.optim.Adam(model.parameters(), lr=2e-5)
ids = torch.randint(0, 50, (200, 5))
losses = []
for _ in range(30):
    # fmt: off
    with torch.autocast("cpu", dtype=torch.bfloat16):  # +
        scores = model(ids[:, :4])  # +
    scores = model(ids[:, :4])  # -
    # fmt: on
    loss = nn.functional.cross_entropy(scores.float(), ids[:, 4])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
