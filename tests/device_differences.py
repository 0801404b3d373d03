"""What may differ between the CPU and a device: operators of torch that do, each with its reason.

An entry is about the programs that have its word in their text. `python benchmarks/devices.py` fails on one that none
of them needs.
"""

from typing import NamedTuple


class Allowed(NamedTuple):
    """A difference that is no error of ours."""

    word: str  # regular expression for the text of a program
    verbs: str  # all, or some, separated by commas
    reason: str


ALL = "all"
ALLOWED = (
    Allowed(
        r"",
        "--create-graph",
        "the engine runs the node with the highest number first, and numbers count for each thread: where one of a "
        "device made some, gradients meet in another order",
    ),
    Allowed(
        r"create_graph=True",
        "step,report,grads,fit,fit --real",
        "the engine runs the node with the highest number first, as above",
    ),
    Allowed(
        r"create_graph=True",
        "trace,capture,saved,memory,find",
        "numbers of two threads are not comparable: nodes that no edge orders come in another order",
    ),
    Allowed(
        r"\.half\(|\bnan|\binf",
        "trace,capture,saved,memory",
        "no value is read from a device in order to say that the loss is not finite",
    ),
    Allowed(
        r"torch\.(as_)?tensor\(|torch\.Tensor\(",
        "fit",
        "the simulated device reads the address of a fake tensor, of which torch warns",
    ),
    Allowed(
        r"mse_loss\(",
        "capture",
        "the CPU's kernel leaves the loss in the memory of the differences, of which it is the mean",
    ),
    Allowed(
        r"\bcheckpoint\w*\(",
        "diff",
        "a reentrant checkpoint keeps the state of random numbers of each device",
    ),
    Allowed(
        r"\b(LSTM|GRU|LSTMCell|GRUCell)\(",
        ALL,
        "recurrent cells are one fused node on a device, as on CUDA (ThnnFusedLstmCellBackward0), and many on the CPU",
    ),
    Allowed(
        r"\b([Dd]ropout\d?d?|TransformerEncoderLayer|TransformerDecoderLayer|MultiheadAttention)\(",
        ALL,
        "dropout is one node on a device, as on CUDA (NativeDropoutBackward0), and a product with a mask on the CPU",
    ),
    Allowed(
        r"\bConv(Transpose)?\dd\(|\bconv\dd\(",
        "fit,fit --real",
        "the CPU's convolutions take scratch memory of oneDNN",
    ),
    Allowed(
        r"\bcheckpoint\w*\(|run_function",
        "fit,fit --real",
        "a checkpoint keeps the state of random numbers, 5,056 B, which is memory of the CPU",
    ),
    Allowed(
        r"\.(tolist|numpy|cpu)\(",
        "fit,fit --real",
        "values that are read are copied to the CPU: after the last backward call, that begins another step",
    ),
    Allowed(
        r"autocast\(|bfloat16|float16|\.half\(",
        "fit,fit --real",
        "the CPU's half-precision matrix products take scratch memory of oneDNN",
    ),
)
