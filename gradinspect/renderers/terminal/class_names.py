"""Classes of nodes in fewer words, where there is no room for more: `BatchNorm` for `NativeBatchNormBackward0`."""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

BACKWARD_0: Final = re.compile("Backward0(?= |$)")
# Which kernel computes it, and what else it returns.
_KERNEL: Final = re.compile("^Native(?=[A-Z])|^ScaledDotProduct(?=[A-Z])|WithIndices(?= |$)|ForCpu(?= |$)")


def without_backward(name: str) -> str:
    """Leave out the end that nearly all have: `Conv` for `ConvBackward0`."""
    return BACKWARD_0.sub("", name)


def brief_classes(names: Iterable[str]) -> dict[str, str]:
    """Return names in the fewest words, those of one output together: no two different ones become alike."""
    short = {name: without_backward(name) for name in names}
    briefest = {name: _KERNEL.sub("", text) for name, text in short.items()}
    taken = Counter([*briefest.values(), *short.values()])
    return {
        name: brief if taken[brief] == 1 + (brief == short[name]) else short[name] for name, brief in briefest.items()
    }
