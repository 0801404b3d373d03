import sys
import weakref

import fingerprint
import torch

torch.manual_seed(19)
w = torch.randn(4, requires_grad=True)


def bad_loss():
    return torch.sqrt(w * 0).sum() * 0


with torch.autograd.detect_anomaly():
    (w**2).sum().backward()
    try:
        bad_loss().backward()
    except RuntimeError as error:
        print(error)
with torch.autograd.set_detect_anomaly(True, check_nan=False):
    bad_loss().backward()
print(w.grad.isnan().all().item(), torch.is_anomaly_enabled(), file=sys.stdout)
with torch.autograd.detect_anomaly():
    t = torch.ones(2, requires_grad=True).exp()
    (gradient,) = torch.autograd.grad(t, t.grad_fn.next_functions[0][0].variable, torch.ones(2), create_graph=True)
held = weakref.ref(t)
del t, gradient
print("held" if held() is not None else "let go")
fingerprint.show()
