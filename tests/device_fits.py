"""Compare what `fit` says of a program on two devices.

It cannot be the same to the byte: Python numbers that an operator takes are tensors on the CPU, as are copies that are
read and the states of random numbers, so on a device they count elsewhere, and a thread of the device frees a gradient
at another moment. That the device's own peak is right to the byte has a witness of its own, the count of its allocator.
Here the peak of each step must be about the same, apart from what the other devices hold, and where the whole peak is
at the same moment, it must be made of the same modules and kinds of memory.
"""

import re
from collections.abc import Iterator

OTHER_DEVICES = re.compile(r"^peak of each device\n((?:  .*\n)*)\n?", re.MULTILINE)
RESERVED = re.compile(r"^  on \w+(?::\d)?: .* allocated, .* reserved\n", re.MULTILINE)
ON_DEVICE = re.compile(r" on \w+(?::\d)?(?= \(|,|$| over)", re.MULTILINE)
SIZE = re.compile(r"([\d.,]+) (B|KiB|MiB|GiB)\b")
PEAK = re.compile(r"^Peak: ([\d.,]+ \w+)", re.MULTILINE)
ROW = re.compile(r"^  (.+?)  [\d.,]+ [KMG]?i?B  [<>]?([\d.]+)%$", re.MULTILINE)
WHERE = re.compile(r"(?<=\))(, \S+)\n  (.*)\n(  \S+:\d+  .*\n)?")  # below the peak: the operator and the line
STEP = re.compile(r"^  (step \d+): (?:peak ([\d.,]+ \w+) in [a-z ]+, )?([\d.,]+ \w+) at its end", re.MULTILINE)
PHASE = re.compile(r"(?<=: peak SIZE) in [a-z ]+(?=,)")
NOT_COUNTED = re.compile(r"^Not counted: .*$", re.MULTILINE)
UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
SLACK_BYTES, SLACK = 1024, 0.10  # of the peak
MUCH, LITTLE = 25.0, 10.0  # percent of the peak


def fit_differences(expected: str, found: str) -> Iterator[str]:
    """List where two reports of `fit` say something else, as lines of a diff."""
    sizes = sizes_of(expected), sizes_of(found)
    slack = max(SLACK_BYTES, SLACK * sizes[0].get("peak", 0.0))
    for name in sizes[0].keys() & sizes[1]:
        if not sizes[1][name] - slack <= sizes[0][name] <= sizes[1][name] + held_elsewhere(found) + slack:
            yield from (f"-{name}: {sizes[0][name]:.0f} B", f"+{name}: {sizes[1][name]:.0f} B")
    if moment_of(expected) == moment_of(found) and abs(sizes[0].get("peak", 0) - sizes[1].get("peak", 0)) <= slack:
        for name in parts_that_differ(expected, found, slack):
            yield f"~{name} is {share(expected, name):.0f}% of one peak, and {share(found, name):.0f}% of the other"
    lines = words_of(expected).splitlines(), words_of(found).splitlines()
    yield from (f"-{line}" for line in lines[0] if line not in lines[1])
    yield from (f"+{line}" for line in lines[1] if line not in lines[0])


def held_elsewhere(text: str) -> float:
    """Return the sum of the peaks of other devices than that of the report."""
    rows = "".join(OTHER_DEVICES.findall(text))
    own = sizes_of(text).get("peak", 0.0)
    return max(0.0, sum(bytes_of(f"{number} {unit}") for number, unit in SIZE.findall(rows)) - own)


def bytes_of(size: str) -> float:
    """Read a size."""
    number, unit = size.split()
    return float(number.replace(",", "")) * UNITS[unit]


def sizes_of(text: str) -> dict[str, float]:
    """Read the peak, and those of each step and what is held at its end, in bytes."""
    peak = PEAK.search(text)
    found = {} if peak is None else {"peak": bytes_of(peak[1])}
    for step, peak, end in STEP.findall(text):
        found |= {f"peak of {step}": bytes_of(peak)} if peak else {}
        found[f"end of {step}"] = bytes_of(end)
    return found


def moment_of(text: str) -> str:
    """Return when the peak is, such as: backward of step 2."""
    found = WHERE.search(RESERVED.sub("", text))
    return "" if found is None else found[2].partition(",")[0]


def share(text: str, name: str) -> float:
    """Return the share of the peak of a module or kind of memory, in percent."""
    return next((float(percent) for row, percent in ROW.findall(text) if row == name), 0.0)


def parts_that_differ(expected: str, found: str, slack: float) -> list[str]:
    """List what is much of one peak, and little of the other, by more bytes than the slack."""
    peak = max(sizes_of(expected).get("peak", 0.0), sizes_of(found).get("peak", 0.0))
    names = dict(ROW.findall(expected)) | dict(ROW.findall(found))
    shares = {name: sorted((share(expected, name), share(found, name))) for name in names}
    return [
        name
        for name, (less, more) in shares.items()
        if more >= MUCH and less < LITTLE and (more - less) / 100 * peak > slack
    ]


def words_of(text: str) -> str:
    """Leave out sizes, rows, and where exactly the peak is."""
    text = NOT_COUNTED.sub("", WHERE.sub(r"\1\n", RESERVED.sub("", OTHER_DEVICES.sub("", text))))
    return PHASE.sub("", SIZE.sub("SIZE", ROW.sub("", ON_DEVICE.sub("", text))))
