"""Compare what `fit` says of a program on two devices.

It cannot be the same to the byte: Python numbers that an operator takes are tensors on the CPU, so on a device they
count elsewhere, and a thread of the device frees a gradient at another moment. That the device's own peak is right to
the byte has a witness of its own, the count of its allocator. Here the peak must be about the same, and be made of the
same modules and kinds of memory.
"""

import re
from collections.abc import Iterator

OTHER_DEVICES = re.compile(r"^peak of each device\n(?:  .*\n)*\n?", re.MULTILINE)
ON_DEVICE = re.compile(r" on \w+(?::\d)?(?= \(|,|$| over)", re.MULTILINE)
SIZE = re.compile(r"([\d.,]+) (B|KiB|MiB|GiB)\b")
PEAK = re.compile(r"^Peak: ([\d.,]+) (B|KiB|MiB|GiB)", re.MULTILINE)
ROW = re.compile(r"^  (.+?)  [\d.,]+ [KMG]?i?B  ([\d.]+)%$", re.MULTILINE)
WHERE = re.compile(r"(?<=\))(, \S+)\n  .*\n(  \S+:\d+  .*\n)?")  # below the peak: the operator and the line
PHASE = re.compile(r"(?<=: peak SIZE) in [a-z ]+(?=,)")
NOT_COUNTED = re.compile(r"^Not counted: .*$", re.MULTILINE)
UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
SLACK_BYTES, SLACK = 1024, 0.10  # of the peak
MUCH, LITTLE = 25.0, 10.0  # percent of the peak


def fit_differences(expected: str, found: str) -> Iterator[str]:
    """List where two reports of `fit` say something else, as lines of a diff."""
    peaks = peak_of(expected), peak_of(found)
    if abs(peaks[0] - peaks[1]) > max(SLACK_BYTES, SLACK * peaks[0]):
        yield from (f"-peak: {peaks[0]:.0f} B", f"+peak: {peaks[1]:.0f} B")
    for name in parts_that_differ(expected, found):
        yield f"~{name} is {share(expected, name):.0f}% of one peak, and {share(found, name):.0f}% of the other"
    lines = words_of(expected).splitlines(), words_of(found).splitlines()
    yield from (f"-{line}" for line in lines[0] if line not in lines[1])
    yield from (f"+{line}" for line in lines[1] if line not in lines[0])


def peak_of(text: str) -> float:
    """Read the peak, in bytes; 0 if none is given."""
    found = PEAK.search(text)
    return 0.0 if found is None else float(found[1].replace(",", "")) * UNITS[found[2]]


def share(text: str, name: str) -> float:
    """Return the share of the peak of a module or kind of memory, in percent."""
    return next((float(percent) for row, percent in ROW.findall(text) if row == name), 0.0)


def parts_that_differ(expected: str, found: str) -> list[str]:
    """List what is much of one peak, and little of the other."""
    names = dict(ROW.findall(expected)) | dict(ROW.findall(found))
    shares = {name: sorted((share(expected, name), share(found, name))) for name in names}
    return [name for name, (less, more) in shares.items() if more >= MUCH and less < LITTLE]


def words_of(text: str) -> str:
    """Leave out sizes, rows, and where exactly the peak is."""
    text = NOT_COUNTED.sub("", WHERE.sub(r"\1\n", OTHER_DEVICES.sub("", text)))
    return PHASE.sub("", SIZE.sub("SIZE", ROW.sub("", ON_DEVICE.sub("", text))))
