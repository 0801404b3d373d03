"""What may differ between the CPU and a device: what torch or the simulated one does otherwise, each with its reason.

An entry is about the programs that have its word in their text, and takes away one difference: from the captures, which
the verbs then read again, or from the texts. What is left must be equal. Each entry has a program that needs it:
`python benchmarks/devices.py` and the tests fail where it does not. The narrowest come first.
"""

import re
from typing import NamedTuple

from device_captures import (
    Rewriting,
    dropout_as_one_node,
    gradients_added_in_any_order,
    losses_not_read,
    ordered_by_edges,
)
from device_recurrent import places_alone, recurrent_layers_as_nodes
from device_texts import (
    Leaving,
    alike,
    dropout_steps,
    in_any_order,
    last_step,
    less_saved,
    lines_of_program,
    names_in_any_order,
    peak_in,
    peaks,
    rounded,
    rows_in_any_order,
    without,
)


class Allowed(NamedTuple):
    """A difference that is no error of ours."""

    word: str  # regular expression for the text of a program
    verbs: str  # separated by commas
    reason: str
    witness: str  # a program that needs it
    captures: Rewriting | None = None
    texts: Leaving | None = None

    def is_about(self, text: str, verb: str) -> bool:
        """Say whether it is about a program and a verb."""
        return verb in self.verbs.split(",") and re.search(self.word, text) is not None


GRAPH = "trace,capture,saved,memory,find,diff"  # all that is said of a capture
FIT = "fit,fit --real"
RECURRENT = r"\b(LSTM|GRU|LSTMCell|GRUCell)\("
DROPOUT = r"\b([Dd]ropout\d?d?|TransformerEncoderLayer|TransformerDecoderLayer|MultiheadAttention)\("
HALF = r"autocast\(|bfloat16|float16|\.half\("
HALF_DROPOUT = rf"(?s)\A(?=.*(?:{HALF}))(?=.*{DROPOUT})"
ALLOWED = (
    Allowed(
        r"create_graph=True",
        GRAPH,
        "numbers of two threads are not comparable: nodes that no edge orders come in another order",
        "transparency/maml",
        captures=ordered_by_edges,
    ),
    Allowed(
        r"",
        "--create-graph",
        "numbers of two threads are not comparable, as above",
        "clean/wgan_gp_critic",
        captures=ordered_by_edges,
    ),
    Allowed(
        r"create_graph=True",
        "report",
        "`step` runs the nodes in the order of their numbers, as above",
        "clean/wgan_gp_critic",
        texts=in_any_order,
    ),
    Allowed(
        r"create_graph=True",
        FIT,
        "the engine runs the node with the highest number first, and numbers count for each thread: what nodes save is "
        "freed earlier or later",
        "clean/wgan_gp_critic",
        texts=peaks,
    ),
    Allowed(
        r"",
        GRAPH + ",--create-graph",
        "no value is read from a device in order to say that the loss is not finite",
        "broken/inf_exp",
        captures=losses_not_read,
    ),
    Allowed(
        DROPOUT,
        GRAPH + ",--create-graph",
        "dropout is one node on a device, as on CUDA (NativeDropoutBackward0), and a product with a mask on the CPU",
        "step_memory/SGD",
        captures=dropout_as_one_node,
    ),
    Allowed(
        DROPOUT,
        "report",
        "dropout is one node on a device, as above",
        "step_memory/SGD",
        texts=dropout_steps,
    ),
    Allowed(
        DROPOUT,
        "check",
        "dropout saves its mask as bool on a device, as above",
        "broken/checkpoint_flag",
        texts=alike("saved bool[2, 4] for dropout", "saved f32[2, 4] for dropout"),
    ),
    Allowed(
        DROPOUT,
        FIT,
        "dropout saves its mask as bool on a device, as above: a byte for each element in place of four",
        "broken/shared_blocks",
        texts=less_saved,
    ),
    Allowed(
        DROPOUT,
        "check,grads,fit --real",
        "the CPU multiplies by dropout's mask that it has divided, and a device divides the product: last bits differ",
        "transparency/attention",
        texts=rounded(1e-6),
    ),
    Allowed(
        HALF_DROPOUT,
        "grads",
        "the CPU rounds dropout's mask, by which it multiplies, to half precision, and a device scales what is left",
        "step_memory/GPT_autocast",
        texts=rounded(0.1),
    ),
    Allowed(
        HALF_DROPOUT,
        "check,fit --real",
        "the CPU rounds dropout's mask, as above: losses and norms differ by less than half precision can tell",
        "clean/scaler_accumulated",
        texts=rounded(0.03, 1 / 256),
    ),
    Allowed(
        HALF_DROPOUT,
        "report",
        "the CPU rounds dropout's mask, as above, and elements near zero differ by any factor",
        "step_memory/GPT_autocast",
        texts=without(r"[-\d.e+]*\d"),
    ),
    Allowed(
        r"create_graph=True",
        "--create-graph",
        "the engine runs the node with the highest number first, and numbers count for each thread: gradients are "
        "added up in another order",
        "transparency/maml",
        captures=gradients_added_in_any_order,
    ),
    Allowed(
        RECURRENT,
        GRAPH,
        "recurrent cells are one fused node on a device, as on CUDA (ThnnFusedLstmCellBackward0), and many on the CPU",
        "step_memory/LSTM",
        captures=recurrent_layers_as_nodes,
    ),
    Allowed(
        RECURRENT,
        "--create-graph",
        "recurrent cells are fused, as above: their backward makes other nodes, between those of other modules too",
        "step_memory/LSTM",
        captures=places_alone,
    ),
    Allowed(
        RECURRENT,
        "grads,step",
        "recurrent cells are fused, as above, and so are their gradients, which arrive in another order",
        "step_memory/LSTM",
        texts=rows_in_any_order,
    ),
    Allowed(RECURRENT, "report", "recurrent cells are fused, as above", "step_memory/LSTM", texts=lines_of_program),
    Allowed(
        RECURRENT,
        "check",
        "recurrent cells are fused, as above, and lead to their parameters in another order",
        "broken/frozen_misspelled",
        texts=names_in_any_order,
    ),
    Allowed(
        RECURRENT,
        "check",
        "recurrent cells are fused, as above: other classes, and fewer nodes",
        "broken/grown_state",
        texts=without(r"\b\w+Backward0\b|\b\d+ (?=nodes)"),
    ),
    Allowed(
        RECURRENT,
        "check,grads,fit --real",
        "recurrent cells are fused, as above, and round otherwise",
        "transparency/recurrent",
        texts=rounded(0.03),
    ),
    Allowed(RECURRENT, FIT, "fused cells save other memory than many nodes", "step_memory/LSTM", texts=peaks),
    Allowed(
        r"fork_rng\(",
        "trace,check,grads,step,fit,fit --real,--create-graph",
        "torch warns of a program that forks random numbers where there are several devices",
        "transparency/random_numbers",
        texts=without(r".*UserWarning: SIM reports that you have .*\n.*\n"),
    ),
    Allowed(
        r"SIGUSR1",
        "check",
        "a hook runs on the device's thread, and signal handlers run on the main one, which waits in the engine",
        "transparency/signals_and_hooks",
        texts=alike("('SIGUSR1', '_engine_run_backward')", "('SIGUSR1', '<lambda>')"),
    ),
    Allowed(
        r"torch\.(as_)?tensor\(|torch\.(Float)?Tensor\(",
        "fit",
        "the simulated device reads the address of a fake tensor, of which torch warns",
        "advice/stack_of_legacy",
        texts=without(r".*UserWarning: Accessing the data pointer of FakeTensor .*\n(?:  .*\n)?"),
    ),
    Allowed(
        r"\bConv(Transpose)?\dd\(|\bconv\dd\(",
        FIT,
        "the CPU's convolutions take scratch memory of oneDNN",
        "step_memory/convolutions",
        texts=peak_in(r"aten\.\w*conv"),
    ),
    Allowed(
        r"",
        FIT,
        "the tensor of a Python number, or a copy that is read, begins another step after the last backward call, on "
        "one of both devices",
        "transparent/inference_tensor",
        texts=last_step,
    ),
    Allowed(
        HALF,
        FIT,
        "the CPU's half-precision matrix products and attention take scratch memory of oneDNN",
        "step_memory/products_in_half_precision",
        texts=peak_in(r"aten\.(\w*mm|linear|matmul|_scaled_dot_product\w*)"),
    ),
)
