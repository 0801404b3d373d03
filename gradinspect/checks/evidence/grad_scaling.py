"""Whether a GradScaler is at work, which lets gradients overflow on purpose until it has found its scale."""

import torch

from gradinspect.record.instances import instances_of


def is_scaling() -> bool:
    """Tell whether the program holds an enabled GradScaler. Looks at every object, so ask only where it matters."""
    return any(scaler.is_enabled() for scaler in instances_of(torch.amp.GradScaler))
