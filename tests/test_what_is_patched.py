"""Each verb replaces functions of torch and Python for a while: which ones, and that none is left afterwards."""

from pathlib import Path

import pytest
from runs import gradinspect

pytestmark = pytest.mark.slow

PROGRAM = """
import atexit
import torch
from gradinspect.torch_api.patching.patches import patched_names

atexit.register(lambda: print("after:", *patched_names(), flush=True))
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
print("during:", *patched_names(), flush=True)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.ones(3, 2)).sum().backward()
    optimizer.step()
"""
# To be told of the engine's calls, and to be invisible to warnings, tracebacks, fast paths, and to whoever counts modes
# or asks how deep it may call; to be out of the way of torch.jit.trace; to follow threads that begin, and custom
# Functions that are applied; and to find optimizers that the program has hidden from the garbage collector.
ALWAYS = {
    "BackwardCFunction.__init__",
    "ScriptModule._create_method_from_trace",
    "ScriptModule._create_method_from_trace_with_dict",
    "Thread._bootstrap_inner",
    "gc.freeze",
    "sys.getrecursionlimit",
    "sys.setrecursionlimit",
    "torch._C._create_function_from_trace",
    "torch._C._create_function_from_trace_with_dict",
    "torch._C._create_graph_by_tracing",
    "torch._C._get_function_stack_at",
    "torch._C._is_torch_function_mode_enabled",
    "torch._C._len_torch_function_stack",
    "torch.autograd._engine_run_backward",
    "torch.autograd.graph._engine_run_backward",
    "torch.fx.traceback.format_stack",
    "torch.nn.modules.module._has_any_global_hook",
    "torch.overrides._get_current_function_mode",
    "torch.overrides._get_current_function_mode_stack",
    "torch.overrides.has_torch_function",
    "torch.utils.weakref",
    "warnings._showwarnmsg",
}
# To let the program's signal handlers wait while our own code runs.
HANDLERS = {"_signal.getsignal", "_signal.signal"}
# To notice compiled code: torch.compile's switch, or before it was imported, the function to which it reports its use.
COMPILED = {"torch._C._log_api_usage_once", "torch._dynamo.eval_frame._maybe_set_eval_frame"}
FAKE = {  # what cannot run on tensors without values
    "DataLoader.__iter__",
    "Distribution._validate_args",
    "Module._apply",
    "Tensor.__deepcopy__",
    "Tensor.share_memory_",
    "Tensor.__format__",
    "_BaseDataLoaderIter.__next__",
    "os.rename",
    "os.replace",
    "shutil.copy",
    "shutil.copy2",
    "shutil.copyfile",
    "shutil.move",
    "torch.jit.save",
    "torch._subclasses.fake_tensor.log",
    "torch.load",
    "torch.save",
    "torch.serialization.load",
    "torch.serialization.save",
    "torch.nn.init._no_grad_trunc_normal_",
}
ALLOCATES = {"UntypedStorage.resize_", "torch.get_rng_state", "torch.random.get_rng_state"}
CHECK = {
    "DataLoader.__init__",
    "Function.apply",
    "GradScaler.scale",
    "LRScheduler.__init__",
    "LRScheduler.step",
    "Module.__init__",
    "Module.load_state_dict",
    "Module.state_dict",
    "Module.train",
    "Optimizer.__init__",
    "Optimizer.__setstate__",
    "ReduceLROnPlateau.__init__",
    "ReduceLROnPlateau.step",
    "torch.utils.checkpoint._checkpoint_hook",
    "torch.utils.checkpoint._recomputation_hook",
}
VERBS: dict[str, set[str]] = {
    "trace": set(),
    "trace --eager": {"torch.compile"},
    "saved": set(),
    "memory": set(),
    "memory --iterations 2": set(),
    "memory --fake": FAKE,
    "fit": {*FAKE, *ALLOCATES},
    "plan --fit 1GiB": {*FAKE, *ALLOCATES, "Module.zero_grad", "Optimizer.zero_grad"},
    "fit --real": {"torch.autograd.profiler._prepare_profiler", "torch.autograd.profiler._run_on_profiler_start"},
    "grads": set(),
    "grads --steps 2": set(),
    "check": CHECK,
    "check --gradcheck": CHECK,
}


@pytest.mark.parametrize(("verb", "names"), VERBS.items(), ids=VERBS)
def test_what_is_patched_is_known_and_undone(tmp_path: Path, verb: str, names: set[str]) -> None:
    """When atexit handlers run, torch is as it was."""
    (tmp_path / "train.py").write_text(PROGRAM)
    goes_on = () if verb.startswith("plan") else ("--continue",)
    done = gradinspect(*verb.split(), "train.py", *goes_on, cwd=tmp_path)
    lines = dict(line.split(":", 1) for line in done.stdout.splitlines() if line.startswith(("during:", "after:")))

    during = set(lines["during"].split())

    assert lines["after"].split() == []
    assert during - COMPILED == ALWAYS | HANDLERS | names
    assert len(during & COMPILED) == 1
