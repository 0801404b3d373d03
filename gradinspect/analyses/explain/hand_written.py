"""Facts about the node classes that are not generated."""

from typing import Final

from gradinspect.graph import Record


class HandWritten(Record, frozen=True):
    """A node class written by hand in C++, or in torch's Python."""

    name: str
    text: str
    breakpoint: str = ""
    double_backward: str = ""


_NODES = (
    HandWritten(
        "AccumulateGrad",
        "The end of every path: adds the gradient into `.grad` of a leaf, `variable`. A leaf has one, however often "
        "it is used. The first gradient is stolen or cloned, later ones are added, out of place with "
        "create_graph=True.",
        "torch::autograd::AccumulateGrad::apply",
        "The addition is recorded if grad mode is on, as it is with create_graph=True.",
    ),
    HandWritten(
        "CopySlices",
        "Represents the base of a view that was modified in place: clones the gradient, gives the written part to the "
        "node of the in-place op, and passes on the rest. That node is inside this one and not in `next_functions`.",
        "torch::autograd::CopySlices::apply",
        "Yes, if the inner node is.",
    ),
    HandWritten(
        "GraphRoot",
        "Made by the engine for one backward call: passes the gradients of the roots to their nodes. Never in "
        "`next_functions`.",
        "torch::autograd::GraphRoot::apply",
    ),
    HandWritten(
        "UndefinedGrad",
        "Passes on an undefined gradient, as if there were none.",
        "torch::autograd::UndefinedGrad::apply",
        "Yes, through UndefinedGradBackward.",
    ),
    HandWritten(
        "UndefinedGradBackward",
        "The backward of UndefinedGrad: also undefined.",
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
        "Raises its message in backward, not in forward, so that an op can be used if its gradient is not needed.",
        "torch::autograd::DelayedError::apply",
        "No: it raises.",
    ),
    HandWritten("Identity", "Passes the gradient on unchanged.", "torch::autograd::Identity::apply", "Yes."),
    HandWritten(
        "CopyBackwards",
        "The backward of `copy_()` between devices: passes zeros to the overwritten tensor, and the gradient, moved to "
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
        "A block with reentrant checkpointing (torch/utils/checkpoint.py): reruns the block and calls backward "
        "inside backward. The nodes of the block exist only then.",
    ),
    HandWritten(
        "CompiledFunctionBackward",
        "A region compiled by torch.compile (torch/_functorch/_aot_autograd): one node with a compiled backward. "
        "With --eager, the program runs as it is written, and the graph is that of its operators.",
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

COMPOSED: Final = {  # functions of several operators -> their nodes on the CPU, the most characteristic first
    "batch_norm": ("NativeBatchNormBackward0",),
    "chunk": ("SplitBackward0",),
    "conv1d": ("ConvolutionBackward0",),
    "conv2d": ("ConvolutionBackward0",),
    "conv3d": ("ConvolutionBackward0",),
    "conv_transpose1d": ("ConvolutionBackward0",),
    "conv_transpose2d": ("ConvolutionBackward0",),
    "cross_entropy_loss": ("NllLossBackward0", "LogSoftmaxBackward0"),
    "dropout": ("MulBackward0",),
    "einsum": ("BmmBackward0", "PermuteBackward0"),
    "embedding_bag": ("EmbeddingBagBackward0",),
    "flatten": ("ViewBackward0",),
    "group_norm": ("NativeGroupNormBackward0",),
    "instance_norm": ("NativeBatchNormBackward0",),
    "layer_norm": ("NativeLayerNormBackward0",),
    "linear": ("AddmmBackward0", "TBackward0"),
    "log_softmax": ("LogSoftmaxBackward0",),
    "matmul": ("BmmBackward0",),
    "max_pool2d": ("MaxPool2DWithIndicesBackward0",),
    "narrow": ("SliceBackward0",),
    "nll_loss": ("NllLossBackward0",),
    "norm": ("LinalgVectorNormBackward0",),
    "outer": ("MulBackward0",),
    "pad": ("ConstantPadNdBackward0",),
    "reshape": ("ViewBackward0",),
    "scaled_dot_product_attention": ("ScaledDotProductFlashAttentionForCpuBackward0",),
    "selu": ("EluBackward0",),
    "softmax": ("SoftmaxBackward0",),
    "square": ("PowBackward0",),
}
