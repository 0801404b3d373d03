import fingerprint
import torch
from torch import nn

torch.manual_seed(22)
model = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for _ in range(4):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(torch.randn(4, 8))
        loss = nn.functional.cross_entropy(out.float(), torch.tensor([0, 1, 2, 3]))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(out.dtype, f"{loss.item():.9f}", torch.is_autocast_enabled("cpu"))
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=2)
for factor in (1.0, float("inf"), 1.0):
    loss = model(torch.randn(4, 8)).float().square().mean() * factor
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(scaler.get_scale())
fingerprint.show(model)
