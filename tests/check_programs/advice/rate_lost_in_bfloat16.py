# expect: GI380
# why: the step is less than bfloat16 can add to them.
# advice: Keep the parameters in float32, and let torch.autocast compute in bfloat16, or in float16 with a GradScaler.
# lines: optimizer=11 step=23 backward=22
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 3))
model = model.bfloat16()  # -
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
x, y = torch.randn(48, 6), torch.randint(3, (48,))
history = []
for _ in range(8):
    scores = model(x.bfloat16())  # -
    with torch.autocast("cpu", dtype=torch.bfloat16):  # +
        scores = model(x)  # +

    loss = nn.functional.cross_entropy(scores.float(), y)
    history.append(loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history[-1] = nn.functional.cross_entropy(model(x), y).item()  # +
print("loss", history[0], history[-1])
