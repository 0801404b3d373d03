"""The programs that are run on two devices, as their authors would write them there. None of them names a device."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from growth_programs import CLEAN, GROWING, HEAD
from step_memory_programs import PROGRAMS as STEP_MEMORY

TESTS = Path(__file__).parent
FOLDERS = {
    "samples": TESTS.parent / "samples",
    "broken": TESTS / "check_programs" / "broken",
    "clean": TESTS / "check_programs" / "clean",
    "advice": TESTS / "check_programs" / "advice",
    "transparent": TESTS / "check_programs" / "transparent",
    "transparency": TESTS / "transparency_programs",
}
NOT_RUN = {
    "samples/ddp": "a program of several processes, which torchrun starts",
    "samples/train": "its DataLoader has workers: what is on a device stays in its process, as with CUDA",
    "broken/cut_from_numpy": "what it makes of a NumPy array is on the CPU: by itself it fails on a device",
    "broken/twice_numpy": "what it makes of a NumPy array is on the CPU: by itself it fails on a device",
    "broken/numpy_shared": "what is on a device shares no memory with NumPy",
    "clean/numpy_beside": "what is on a device shares no memory with NumPy",
    "broken/numpy_buffer": "what is on a device shares no memory with NumPy",
    "transparency/counted_calls": "the simulated device has no sparse tensors",
    "transparency/forward_over_reverse": "forward mode gives zeros on the simulated device, which it prints",
    "clean/spatial_transformer": "by itself it trains on other numbers there, since its grid is not right",
    "transparency/deterministic": "new memory that torch fills for deterministic algorithms is not filled there",
    "transparency/saved_models": "what it saves names the device, and it prints the sizes",
    "transparency/threads_backward": "which of its threads calls backward first differs from run to run",
    "transparency/threads_hooks": "which of its threads calls backward first differs from run to run",
    "transparent/counted_events": "it counts the events of the CPU's operators",
    "clean/spectral_fft_loss": "the simulated device has no Fourier transforms",
    "transparency/profiler_counts": "it counts the events of the CPU's operators",
    "clean/sparse_embedding_bag": "the simulated device has no sparse tensors",
    "transparency/sparse_gradients": "the simulated device has no sparse tensors",
    "samples/compiled": "the compiler writes code for the devices that it knows",
    "transparency/compiled": "the compiler writes code for the devices that it knows",
    "transparency/fingerprint": "a module of the other programs",
    "transparency/loader_fork": "what is on a device stays in its process, as with CUDA",
    "transparency/loader_spawn": "what is on a device stays in its process, as with CUDA",
    "transparency/children": "what is on a device stays in its process, as with CUDA",
    "transparency/threads_parallel_apply": "its replicas are given devices by number, which means CUDA",
}
NOT_COMPARED = {
    ("transparency/threads_shared_graph", "fit"): "torch's mode of fake tensors takes one thread at a time: which of "
    "the threads of the program fail differs from run to run",
}
CPU_NAMED = re.compile(r"""(["'])cpu\1""")


@cache
def programs() -> dict[str, str]:
    """Return every program, by the folder and name that it gets here."""
    return {name: text for name, text in _all() if name not in NOT_RUN}


def _all() -> Iterator[tuple[str, str]]:
    for family, folder in FOLDERS.items():
        for path in sorted(folder.glob("*.py")):
            yield f"{family}/{path.stem}", path.read_text()
    for name, text in STEP_MEMORY.items():
        yield f"step_memory/{_word(name)}", text
    for name, (text, *_) in GROWING.items():
        yield f"growing/{_word(name)}", HEAD + text
    for name, text in CLEAN.items():
        yield f"not_growing/{_word(name)}", HEAD + text


def _word(name: str) -> str:
    return re.sub(r"\W+", "_", name)


def written_for(text: str, device: str) -> str:
    """Return a program as it is written for a device, line by line.

    NumPy reads the CPU's memory only, so an author copies first; on the CPU that copies nothing. And what names the
    CPU, such as autocast, names the device.
    """
    return CPU_NAMED.sub(rf"\1{device}\1", text.replace(".numpy()", ".cpu().numpy()"))


def write_all(folder: Path, device: str, names: list[str]) -> None:
    """Write programs into a folder, each in that of its family."""
    for family, source in FOLDERS.items():
        (folder / family).mkdir(parents=True, exist_ok=True)
        for path in source.glob("fingerprint.py"):
            (folder / family / path.name).write_text(written_for(path.read_text(), device))
    for name in names:
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(written_for(programs()[name], device))
