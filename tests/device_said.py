"""What a command said of a program on one device, as it is compared: NOTE [What may differ everywhere]."""

import json
import re
from pathlib import Path
from typing import Any

from device_captures import DEVICE, PER_THREAD, Capture
from device_runs import CPU, SIMULATED, DeviceRuns, Ran

DEVICE_OF_TENSOR = re.compile(rf"(?<=[\])]) {SIMULATED}:\d\b")
TYPE_OF_TENSOR = re.compile(rf"\b{SIMULATED}(\w+)Type\b")  # as torch's errors have it
LOG = re.compile(r"^[A-Z]\d{4} [\d:.]+ \d+ ", re.MULTILINE)
TIME = re.compile(r"\d[\d,.]* (ns|µs|us|ms|s)\b")
UNKNOWN_BLOCK = re.compile(r"^\[W.* CPUAllocator\.cpp:.* Memory block of unknown size .*\n", re.MULTILINE)
GAP = re.compile(r"[ ─━═]{2,}")
BAR = re.compile(r"[ ▏▎▍▌▋▊▉█]*[▏▎▍▌▋▊▉█]")
CURVE = re.compile(r"^  [▁▂▃▄▅▆▇█]+\n  \|.*\n", re.MULTILINE)
BYTES_OF_DEVICE = re.compile(rf"^  on (?:{CPU}|{SIMULATED}:\d) .*\n", re.MULTILINE)  # as `memory` has them
EQUAL = 0


def tree_of(device: DeviceRuns, capture: Path) -> str:
    """Draw the tree of a capture without its device, whose name would break lines elsewhere."""
    moved = capture.with_suffix(".moved.json")
    moved.write_text(DEVICE.sub(CPU, capture.read_text()))
    (tree,) = device.run(capture.parent, [["trace", moved.name, "--full"]])
    return printed(tree, capture.parent)


def said_by_diff(runs: DeviceRuns, folder: Path, name: str) -> str:
    """Compare both captures with `diff`, to which they must be the same graph."""
    files = [str(folder / device / name) for device in (CPU, SIMULATED)]
    (ran,) = runs.run(folder, [["diff", *files, "--ignore", "device"]])
    return f"exit {EQUAL}" if ran.code == EQUAL else printed(ran, folder)


def printed(ran: Ran, folder: Path) -> str:
    """Write what a command printed as it is compared: NOTE [What may differ everywhere]."""
    text = f"{ran.output}\n{ran.errors}\nexit {ran.code}".replace(str(folder), "FOLDER")
    return without_device(CURVE.sub("", BYTES_OF_DEVICE.sub("", text)))


def without_device(text: str) -> str:
    """Leave out the device, times, and how columns are aligned."""
    text = TYPE_OF_TENSOR.sub(r"torch.\1Tensor", DEVICE_OF_TENSOR.sub("", UNKNOWN_BLOCK.sub("", text)))
    text = DEVICE.sub(CPU, LOG.sub("", text)).replace(f"(type='{CPU}', index=0)", f"(type='{CPU}')")
    return GAP.sub("  ", BAR.sub("", TIME.sub("TIME", text)))


def written(path: Path) -> str:
    """Write what a verb left in a file as it is compared: NOTE [What may differ everywhere]."""
    return comparable(loaded(path)) if path.suffix == ".json" else without_device(path.read_text())


def comparable(capture: Capture) -> str:
    """Write a capture as it is compared."""
    return DEVICE.sub(CPU, json.dumps(without_threads(capture), indent=0, sort_keys=True))


def without_threads(value: Any) -> Any:
    """Leave out of a capture what counts for each thread."""
    if isinstance(value, dict):
        return {key: without_threads(item) for key, item in value.items() if key not in PER_THREAD}
    return [without_threads(item) for item in value] if isinstance(value, list) else value


def loaded(path: Path) -> Capture:
    """Read a capture file."""
    capture: Capture = json.loads(path.read_text())
    return capture


def same(expected: Capture, found: Capture) -> bool:
    """Say whether captures are the same but for what may differ everywhere."""
    return comparable(expected) == comparable(found)
