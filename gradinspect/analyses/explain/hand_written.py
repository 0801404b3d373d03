"""What is known of the nodes that no generator makes."""

from gradinspect.graph import Record


class HandWritten(Record, frozen=True):
    """A node class that is written by hand in C++, or in torch's Python."""

    name: str
    text: str
    breakpoint: str = ""
    double_backward: str = ""


_NODES = (
    HandWritten(
        "AccumulateGrad",
        "The end of every path: adds the gradient into `.grad` of a leaf, `variable`. A leaf has one, however often "
        "it is used. The first gradient is stolen or cloned, later ones are added; out of place under "
        "create_graph=True.",
        "torch::autograd::AccumulateGrad::apply",
        "The addition is recorded when grad mode is on, as it is under create_graph=True.",
    ),
    HandWritten(
        "CopySlices",
        "Stands for the base of a view that was written in place: clones the gradient, gives the written part to the "
        "node of the in-place op, and passes the rest on. That node is inside and not in `next_functions`.",
        "torch::autograd::CopySlices::apply",
        "Yes, as far as the node inside is.",
    ),
    HandWritten(
        "GraphRoot",
        "Made by the engine for one backward call: hands the gradients of the roots to their nodes. Never in "
        "`next_functions`.",
        "torch::autograd::GraphRoot::apply",
    ),
    HandWritten(
        "UndefinedGrad",
        "Passes an undefined gradient on, as if nothing had come.",
        "torch::autograd::UndefinedGrad::apply",
        "Yes, through UndefinedGradBackward.",
    ),
    HandWritten(
        "UndefinedGradBackward",
        "The backward of UndefinedGrad: undefined as well.",
        "torch::autograd::UndefinedGradBackward::apply",
    ),
    HandWritten(
        "Error",
        "Raises its message when backward reaches it: the op has no derivative here.",
        "torch::autograd::Error::apply",
        "No: it raises.",
    ),
    HandWritten(
        "NotImplemented",
        "Raises `derivative for ... is not implemented` when backward reaches it.",
        "torch::autograd::Error::apply",
        "No: it raises.",
    ),
    HandWritten(
        "DelayedError",
        "Raises its message in backward, not in forward: so may an op be used whose gradient nobody asks for.",
        "torch::autograd::DelayedError::apply",
        "No: it raises.",
    ),
    HandWritten("Identity", "Passes the gradient on unchanged.", "torch::autograd::Identity::apply", "Yes."),
    HandWritten(
        "CopyBackwards",
        "The backward of `copy_()` between devices: passes zeros to what was overwritten, and the gradient, moved to "
        "its device and dtype, to the source.",
        "torch::autograd::CopyBackwards::apply",
        "Yes.",
    ),
    HandWritten("Scatter", "Splits a tensor over devices; its backward gathers.", "torch::autograd::Scatter::apply"),
    HandWritten(
        "Gather", "Collects tensors of several devices; its backward scatters.", "torch::autograd::Gather::apply"
    ),
    HandWritten(
        "CheckpointFunctionBackward",
        "A block under reentrant checkpointing (torch/utils/checkpoint.py): runs the block again and calls backward "
        "inside backward. The nodes of the block exist only then.",
    ),
    HandWritten(
        "CompiledFunctionBackward",
        "A region that torch.compile made (torch/_functorch/_aot_autograd): one node, with a compiled backward.",
        double_backward="No: compiled regions do not support it.",
    ),
    HandWritten(
        "BackwardHookFunctionBackward",
        "Made by a module's full backward hook (torch/utils/hooks.py): passes gradients on and calls the hook.",
        double_backward="Yes.",
    ),
    HandWritten(
        "_DDPSinkBackward",
        "Made by DistributedDataParallel with find_unused_parameters or a static graph: starts the reduction.",
    ),
)
HAND_WRITTEN = {node.name: node for node in _NODES}
