"""Whether an accelerator is capturing a graph of kernels on this thread, as `torch.cuda.graph` does.

NOTE [Captured kernels]
What runs on a stream that is being captured becomes a part of the program's graph and runs at each replay; reading a
value there makes the capture fail. So we run nothing on it, and say so.
"""

import torch

INSIDE = "inside a CUDA graph capture"


def is_capturing() -> bool:
    """Return whether this thread's stream is being captured; creates no context on a device."""
    accelerator = torch.accelerator.current_accelerator()
    module = None if accelerator is None else getattr(torch, accelerator.type, None)
    ask = getattr(module, "is_current_stream_capturing", None)
    is_initialized = getattr(module, "is_initialized", None)
    if ask is None or (is_initialized is not None and not is_initialized()):
        return False
    return bool(ask())
