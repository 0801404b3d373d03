import copy
import io
import pickle

import fingerprint
import torch
from torch import nn

torch.manual_seed(42)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU())
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.body(x))


model = Model()
optimizer = torch.optim.Adam(model.parameters())
average = torch.optim.swa_utils.AveragedModel(model)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=6)
for step in range(5):
    loss = model(torch.randn(6, 4)).logsumexp(1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    average.update_parameters(model)
    buffer = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, buffer)
    print(step, f"{loss.item():.9f}", buffer.tell())
    if step == 2:
        state = torch.load(io.BytesIO(buffer.getvalue()))
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
copied = copy.deepcopy(model)
again = pickle.loads(pickle.dumps(model))
print(all(torch.equal(a, b) for a, b in zip(copied.state_dict().values(), again.state_dict().values())))
copied(torch.randn(2, 4)).sum().backward()
fingerprint.show(model, copied, average)
