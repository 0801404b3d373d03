"""Whether a GradScaler is active, which lets gradients overflow on purpose until it has found its scale."""

import torch

from gradinspect.recording.names.instances import instances_of


def is_scaling() -> bool:
    """Return whether the program has an enabled GradScaler. Slow: looks at every object."""
    return any(scaler.is_enabled() for scaler in instances_of(torch.amp.GradScaler))
