import warnings

import fingerprint
import torch
import torch.nn.functional as F

torch.manual_seed(35)
w = torch.randn(3, 3, requires_grad=True)
for _ in range(3):
    y = F.softmax(w.reshape(1, 3, 3))
    F.mse_loss(torch.zeros(3, 1) * w[:, :1], torch.zeros(3)).backward()
    y.sum().backward()
y = F.log_softmax(w[None])
torch.empty(2).resize_(2)
torch.add(torch.ones(2), torch.ones(2), out=torch.empty(3))
torch.add(torch.ones(2), torch.ones(2), out=torch.empty(4))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    F.softmax(w[None])
    F.sigmoid(w)
    w.reshape(1, 3, 3).mT
    torch.zeros(2, 3, 4).T
    (w * 2).grad
    torch.searchsorted(torch.arange(6.0).reshape(2, 3).T, torch.ones(3, 1))
    torch.add(torch.ones(2), torch.ones(2), out=torch.empty(3))
print([(item.category.__name__, item.filename == __file__, item.lineno) for item in caught])
with warnings.catch_warnings():
    warnings.filterwarnings("error", module="__main__")
    try:
        F.softmin(w[None])
    except UserWarning as error:
        print("raised", error)
fingerprint.show(w)
