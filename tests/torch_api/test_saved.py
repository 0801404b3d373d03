"""Where no hook can be, on torches that do not say whether a saved tensor has one."""

import threading
from pathlib import Path

import pytest
import torch
from runs import gradinspect

from gradinspect.graph import THREAD_SPAN
from gradinspect.torch_api import saved
from gradinspect.torch_api.patching.patches import patched_names
from gradinspect.torch_api.saved import PushedHooks


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> PushedHooks:
    """A watch on a torch like 2.9."""
    monkeypatch.setattr(saved, "can_read_raw", lambda: False)
    return PushedHooks(THREAD_SPAN)


def number(tensor: torch.Tensor) -> int:
    """Return the number of the node that made a tensor."""
    found: int = tensor.grad_fn._sequence_nr()
    return found


def test_only_nodes_made_outside_default_hooks_are_free(watch: PushedHooks) -> None:
    """Nested hooks, and those that are still pushed, count; so does what was made before anybody watched."""
    x = torch.ones(2, requires_grad=True)
    before = x.exp()
    with watch:
        outside = x.exp()
        with torch.autograd.graph.saved_tensors_hooks(lambda value: value, lambda value: value):
            with torch.autograd.graph.save_on_cpu():
                nested = x.exp()
            inside = x.exp()
            is_free_meanwhile = watch.is_free(number(inside))
        after = x.exp()

    assert [watch.is_free(number(tensor)) for tensor in (before, outside, nested, inside, after)] == [
        False, True, False, False, True,
    ]  # fmt: skip
    assert not is_free_meanwhile
    assert patched_names() == ()


def test_hooks_of_another_thread_say_nothing_of_this_one(watch: PushedHooks) -> None:
    """Its numbers are not those of this thread; what it has made is not read."""
    x = torch.ones(2, requires_grad=True)
    found: list[torch.Tensor] = []

    def compute() -> None:
        with torch.autograd.graph.saved_tensors_hooks(lambda value: value, lambda value: value):
            found.extend(x * 2 for _ in range(number(outside) + 50))  # so that it has all numbers of this thread

    with watch:
        outside = x.exp()
        thread = threading.Thread(target=compute)
        thread.start()
        thread.join()
        after = x.exp()

    assert watch.is_free(number(outside))
    assert watch.is_free(number(after))
    assert not watch.is_free(THREAD_SPAN + number(outside))


def test_a_hook_registered_by_hand_ends_all_reading(watch: PushedHooks) -> None:
    """Nobody knows on which saved tensor it is."""
    with watch:
        y = torch.ones(2, requires_grad=True).exp()
        was_free = watch.is_free(number(y))
        y.grad_fn._raw_saved_result.register_hooks(lambda value: value, lambda value: value)

    assert was_free
    assert not watch.is_free(number(y))


def test_a_tensor_that_torch_refuses_is_described_by_its_complaint() -> None:
    """Where the tensor itself cannot be had, shape, dtype and versions are known all the same."""
    y = torch.ones(2, 3, dtype=torch.float64, requires_grad=True).exp()
    node = y.grad_fn
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as caught:
        _ = node._saved_result

    assert saved.modified_tensor(caught.value) == ((2, 3), "float64", "cpu")
    assert saved.versions_in(caught.value) == (1, 0)


def test_check_finds_a_write_on_a_torch_that_hides_the_tensor(tmp_path: Path) -> None:
    """Both lines are named, and the report says what this torch does not have."""
    (tmp_path / "train.py").write_text(
        "import torch\nw = torch.randn(3, requires_grad=True)\ny = w.exp()\ny.add_(1)\ny.sum().backward()\n"
    )
    done = gradinspect("check", "train.py", cwd=tmp_path, absent=["torch._C._autograd.SavedTensor.data"])

    assert done.returncode == 1
    assert "GI101" in done.stdout
    assert "train.py:3" in done.stdout
    assert "train.py:4" in done.stdout
    assert "has no 'torch._C._autograd.SavedTensor.data'" in done.stdout
