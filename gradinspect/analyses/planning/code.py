"""The code that carries out a plan. What is printed for the user is what our own runs execute.

Its imports are local to one function, so that no name of the program changes.
"""

import ast
import keyword
import re
import unicodedata
from collections.abc import Sequence

from gradinspect.analyses.planning.changes import (
    Autocast,
    Checkpoint,
    CheckpointSegments,
    ChunkLoss,
    HalfSaves,
    ModuleChange,
    Offload,
    Plan,
    counted_paths,
    module_changes_of,
)
from gradinspect.analyses.planning.saved_code import HERE, halving_code, offloading_code, saves_call

ROOT = "model"
PLAN_FILE = "<__plan>"  # of this code, where we run it
_PLAIN = re.compile(r"[\w.]+")
_STATISTICS = """\

    @contextmanager
    def statistics_kept(module, inner):  # batch norms must not count what is computed again
        norms = [part for part in module.modules() if getattr(part, "num_batches_tracked", None) is not None]
        before = [(norm.momentum, norm.num_batches_tracked.clone()) for norm in norms]
        for norm in norms:
            norm.momentum = 0.0
        try:
            with inner:
                yield
        finally:
            for norm, (momentum, batches) in zip(norms, before):
                norm.momentum = momentum
                norm.num_batches_tracked.copy_(batches)
"""
# torch.compile compiles nothing of a module whose forward is `checkpoint` itself.
_LOOP = """\

    def run(module, forward, *args, **kwargs):
        return checkpoint(forward, *args, use_reentrant=False{context}, **kwargs)

    for path in paths:
        module = model.get_submodule(path)
        module.forward = partial(run, module, module.forward)
"""
_SEGMENTS = """\

    sequence = model.get_submodule(path)

    def run(first, last, input):
        for number in range(first, last):
            input = sequence[number](input)
        return input

    def forward(input):
        for first, last in zip(starts, starts[1:]):
            input = checkpoint(run, first, last, input, use_reentrant=False{context})
        return run(starts[-1], len(sequence), input)

    sequence.forward = forward
"""
_AUTOCAST = """\
def autocast_modules(model, paths):
    from functools import partial

    import torch

    def run(module, forward, *args, **kwargs):
        device = next(module.parameters()).device.type
        with torch.autocast(device, torch.bfloat16):
            result = forward(*args, **kwargs)
        is_half = isinstance(result, torch.Tensor) and result.dtype is torch.bfloat16
        return result.float() if is_half else result  # as what follows expects

    for path in paths:
        module = model.get_submodule(path)
        if any(True for _ in module.parameters()):
            module.forward = partial(run, module, module.forward)
"""
_KEEPING = "create_selective_checkpoint_contexts([attrgetter(name)(torch.ops) for name in keep])"


_CHUNKED_LOSS = """\
def chunked_cross_entropy(head, hidden, target, chunks=8, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    from torch.nn.functional import cross_entropy
    from torch.utils.checkpoint import checkpoint

    def loss_of(hidden, target):  # the logits of one chunk, which are computed again in backward
        how = {"ignore_index": ignore_index, "label_smoothing": label_smoothing}
        return cross_entropy(head(hidden), target, reduction="sum", **how)

    parts = zip(hidden.flatten(0, -2).chunk(chunks), target.flatten().chunk(chunks), strict=True)
    total = sum(checkpoint(loss_of, *part, use_reentrant=False) for part in parts)
    return total / (target != ignore_index).sum() if reduction == "mean" else total
"""
CHUNKED_LOSS = "chunked_cross_entropy"
_STEP_IN_BACKWARD = """\
def step_in_backward(optimizer):
    group_of = {parameter: group for group in optimizer.param_groups for parameter in group["params"]}

    def step(parameter):  # the optimizer's own step(), later, finds no gradients
        groups = optimizer.param_groups
        optimizer.param_groups = [{**group_of[parameter], "params": [parameter]}]
        try:
            optimizer.step()
        finally:
            optimizer.param_groups = groups
        parameter.grad = None

    for parameter in group_of:
        if parameter.requires_grad:
            parameter.register_post_accumulate_grad_hook(step)
"""
STEP_IN_BACKWARD = "step_in_backward"


def can_be_written(name: str) -> bool:
    """Return whether a name is Python: `nets["a"]`, but not what only `globals()` or `setattr` can make."""
    try:
        parsed = ast.parse(name, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the parser has limits
        return False
    return isinstance(parsed, ast.Name | ast.Attribute | ast.Subscript) and unicodedata.is_normalized("NFKC", name)


def part_of(name: str, path: str) -> str:
    """Write an expression for a module inside another: `model.body`, or a call if its path has no identifiers."""
    has_identifiers = all(part.isidentifier() and not keyword.iskeyword(part) for part in path.split("."))
    if has_identifiers and unicodedata.is_normalized("NFKC", path):  # to which Python turns identifiers
        return f"{name}.{path}"
    return f"{name}.get_submodule({_quoted(path)})"


def chunked_loss_code() -> str:
    """Write the function that computes a loss in chunks."""
    return _CHUNKED_LOSS


def stepping_code() -> str:
    """Write the function that has an optimizer step inside backward."""
    return _STEP_IN_BACKWARD


def functions_of(plan: Plan) -> str:
    """Write the functions that edited lines of the program call."""
    return chunked_loss_code() if any(isinstance(change, ChunkLoss) for change in plan.changes) else ""


def code_of(plan: Plan, names: tuple[str, ...]) -> str:
    """Write the code that makes a program's models do what the plan says; "" if it changes no module.

    Args:
        plan: The changes.
        names: What the program calls its outermost modules.
    """
    changes = module_changes_of(plan)
    if not changes:
        return ""
    calls = [_call(change, names[change.root], HERE) for change in changes]
    return "\n".join([*_helpers(changes), *calls]) + "\n"


def applied_code(changes: Sequence[ModuleChange], host: str) -> str:
    """Write the code that changes one outermost module, which is in the variable `ROOT`.

    Args:
        changes: To its modules.
        host: The device to offload to.
    """
    return "\n".join([*_helpers(changes), *(_call(change, ROOT, host) for change in changes)])


def _helpers(changes: Sequence[ModuleChange]) -> list[str]:
    """Write the functions that are called."""
    checkpoints = [change for change in changes if isinstance(change, Checkpoint)]
    segments = [change for change in changes if isinstance(change, CheckpointSegments)]
    functions = [_helper(checkpoints)] if checkpoints else []
    functions += [_segments_helper(segments)] if segments else []
    if any(isinstance(change, Offload) for change in changes):
        functions.append(offloading_code())
    if any(isinstance(change, HalfSaves) for change in changes):
        functions.append(halving_code())
    if any(isinstance(change, Autocast) for change in changes):
        functions.append(_AUTOCAST)
    return [f"{function}\n" for function in functions]


def _helper(checkpoints: list[Checkpoint]) -> str:
    """Write the function that wraps the forward of modules."""
    keeps = any(change.kept for change in checkpoints)
    counts = any(change.keeps_statistics for change in checkpoints)
    lines = [f"def checkpoint_modules(model, paths{', keep=()' if keeps else ''}):"]
    if counts:
        lines += ["    from contextlib import contextmanager, nullcontext"]
    lines += ["    from functools import partial"]
    if keeps:
        lines += ["    from operator import attrgetter", "", "    import torch"]
        lines += ["    from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts"]
    else:
        lines += ["", "    from torch.utils.checkpoint import checkpoint"]
    if counts:
        lines += _STATISTICS.splitlines()
    lines += _contexts(keeps=keeps, counts=counts)
    context = ", context_fn=partial(contexts, module)" if keeps or counts else ""
    return "\n".join([*lines, *_LOOP.format(context=context).splitlines(), ""])


def _segments_helper(changes: list[CheckpointSegments]) -> str:
    """Write the function that runs a Sequential in segments."""
    counts = any(change.keeps_statistics for change in changes)
    lines = ["def checkpoint_segments(model, path, starts):"]
    if counts:
        lines += ["    from contextlib import contextmanager, nullcontext", "    from functools import partial", ""]
    lines += ["    from torch.utils.checkpoint import checkpoint"]
    if counts:
        lines += [*_STATISTICS.splitlines(), *_contexts(keeps=False, counts=True)]
    context = ", context_fn=partial(contexts, sequence)" if counts else ""
    return "\n".join([*lines, *_SEGMENTS.format(context=context).splitlines(), ""])


def _contexts(*, keeps: bool, counts: bool) -> list[str]:
    """Write the function that makes what is active in a module's forward, and when it is computed again."""
    if keeps and counts:
        body = [f"first, again = {_KEEPING}", "return first, statistics_kept(module, again)"]
    elif keeps:
        body = [f"return {_KEEPING}"]
    elif counts:
        body = ["return nullcontext(), statistics_kept(module, nullcontext())"]
    else:
        return []
    return ["", "    def contexts(module):", *(f"        {line}" for line in body)]


def _call(change: ModuleChange, root: str, host: str) -> str:
    if isinstance(change, CheckpointSegments):
        return f"checkpoint_segments({root}, {_quoted(change.path)}, {list(change.starts)})"
    paths = _paths(change.paths)
    if isinstance(change, Autocast):
        return f"autocast_modules({root}, {paths})"
    if not isinstance(change, Checkpoint):
        return saves_call(change, root, paths, host)
    if not change.kept:
        return f"checkpoint_modules({root}, {paths})"
    kept = [f'    "{operator}",' for operator in change.kept]
    return "\n".join([f"checkpoint_modules({root}, {paths}, keep=[", *kept, "])"])


def _paths(paths: tuple[str, ...]) -> str:
    counted = counted_paths(paths)
    if counted is None or len(paths) < 3 or not all(map(_PLAIN.fullmatch, paths)):
        return f"[{', '.join(map(_quoted, paths))}]"
    numbers = f"range({counted.last + 1})" if not counted.first else f"range({counted.first}, {counted.last + 1})"
    return f'[f"{counted.before}{{n}}{counted.after}" for n in {numbers}]'


def _quoted(path: str) -> str:
    """Write a path as a string of Python: a module may have any name without a dot."""
    return f'"{path}"' if not path or _PLAIN.fullmatch(path) else repr(path)
