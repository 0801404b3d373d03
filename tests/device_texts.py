"""Leave out of two texts, the CPU's and a device's, a difference with a known cause. Whatever else differs stays."""

import re
from collections.abc import Callable
from typing import TypeAlias

from device_fits import bytes_of, sizes_of

Texts: TypeAlias = tuple[str, str]  # the CPU's, and the device's
Leaving: TypeAlias = Callable[[str, str], Texts]

EXACT = r"-?0x[01]\.[0-9a-f]+p[+-]\d+"
NUMBER = re.compile(rf"(?<![\w.#]){EXACT}|(?<![\w.#])-?\d+\.?\d*(?:e[+-]?\d+)?(?![\w.])|\b[0-9a-f]{{16}}\b")
LAST_BITS = 1e-6  # by which numbers may differ that a program prints exactly
NODE = re.compile(r"#\d+ ")
SECTION = re.compile(r"^## |^### `\d+\. ", re.MULTILINE)
OWN_LINE = re.compile(r"\S+\.py:\d+  .*")
COUNTED = re.compile(
    r"^killed: .*\n|^  no gradient reaches: .*\n|^\d+ of \d+ nodes ran|^.*: \d+ steps\.|^\d+ formulas| \(from \d+\)",
    re.MULTILINE,
)
STEPS_MARK = "### "
PEAK_IN = re.compile(r"^Peak: .*\n(?:  on .*\n)?  (.*)\n", re.MULTILINE)
NAMES = re.compile(r"[\w.]+(?:, [\w.]+)+ and [\w.]+")
MADE = re.compile(r"^The program made (\d+) steps?; \d+ were asked for\.\n", re.MULTILINE)
SIZES = re.compile(r"^Peak: (?:.*\n)*?(?=alive )", re.MULTILINE)
PEAK_SIZE = re.compile(r"^(Peak: |  step \d+: peak )([\d.,]+ \w+)", re.MULTILINE)
SAVED = re.compile(r"^  saved for backward  ([\d.,]+ \w+)", re.MULTILINE)
STEP = re.compile(r"^(  step \d+): peak [\d.,]+ \w+ in [a-z ]+, ", re.MULTILINE)


def without(pattern: str) -> Leaving:
    """Leave out what a pattern matches, in both."""
    compiled = re.compile(pattern, re.MULTILINE)
    return lambda expected, found: (compiled.sub("", expected), compiled.sub("", found))


def alike(name: str, other: str) -> Leaving:
    """Write one name for both, in both."""
    return lambda expected, found: (expected.replace(name, other), found.replace(name, other))


def rounded(relative: float, exact: float = LAST_BITS) -> Leaving:
    """Take lines for equal whose numbers are so to rounding, if all else in them is the same.

    Args:
        relative: By how much they may differ.
        exact: By how much those may that a program prints exactly.
    """

    def close(expected: str, found: str) -> Texts:
        lines, others = expected.splitlines(), found.splitlines()
        new = [line for line in others if line not in lines]
        near = [
            next((one for one in new if line not in others and _is_near(line, one, relative, exact)), line)
            for line in lines
        ]
        return "\n".join(near), "\n".join(others)

    return close


def _is_near(line: str, other: str, relative: float, exact: float) -> bool:
    is_same = NUMBER.sub("", line) == NUMBER.sub("", other)
    return is_same and all(
        _is_close(*pair, relative, exact) for pair in zip(NUMBER.findall(line), NUMBER.findall(other), strict=True)
    )


def _is_close(expected: str, found: str, relative: float, exact: float) -> bool:
    if re.fullmatch(EXACT, expected) and re.fullmatch(EXACT, found):
        pair = float.fromhex(expected), float.fromhex(found)
        return abs(pair[0] - pair[1]) <= exact * max(map(abs, pair))
    try:
        numbers = float(expected), float(found)
    except ValueError:  # the fingerprint of gradients
        return True
    return abs(numbers[0] - numbers[1]) <= relative * max(map(abs, numbers))


def in_any_order(expected: str, found: str) -> Texts:
    """Leave out the order of the nodes, and so their numbers, in a report of `step`."""
    return _sorted(expected), _sorted(found)


def _sorted(report: str) -> str:
    head, *sections = SECTION.split(NODE.sub("# ", report))
    return "\n".join([head, *sorted(sections)])


def dropout_steps(expected: str, found: str) -> Texts:
    """Write the steps of the CPU's products with a mask as those of the device's dropout, if they are of one line."""
    heads = [SECTION.split(text) for text in (expected, found)]
    if len(heads[0]) != len(heads[1]):
        return expected, found
    sections = []
    for product, dropout in zip(*heads, strict=True):
        first, other = product.splitlines(), dropout.splitlines()
        is_dropout = first[0].endswith(" MulBackward0`") and other[0].endswith(" NativeDropoutBackward0`")
        sections.append(dropout if is_dropout and first[1:3] == other[1:3] else product)
    named = set(re.findall(r"→ (#\d+) NativeDropoutBackward0", found))
    for number in named:
        sections = [
            section.replace(f"→ {number} MulBackward0", f"→ {number} NativeDropoutBackward0") for section in sections
        ]
    return STEPS_MARK.join(sections), STEPS_MARK.join(heads[1])


def lines_of_program(expected: str, found: str) -> Texts:
    """Leave out all but the lines of the program, each once."""
    return tuple("\n".join(sorted(set(OWN_LINE.findall(text)))) for text in (expected, found))  # type: ignore[return-value]


def rows_in_any_order(expected: str, found: str) -> Texts:
    """Leave out the order of lines, and what counts nodes."""
    return tuple("\n".join(sorted(COUNTED.sub("", text).splitlines())) for text in (expected, found))  # type: ignore[return-value]


def peaks(expected: str, found: str) -> Texts:
    """Leave out how large the peaks are, and what they are made of; what is held at the end of a step stays."""
    return _without_peaks(expected), _without_peaks(found)


def peak_in(operators: str) -> Leaving:
    """Leave out the peaks if the CPU's peak is in these operators, and is the larger one."""

    def leave_out(expected: str, found: str) -> Texts:
        where = PEAK_IN.search(expected)
        is_theirs = where is not None and re.search(operators, where[1]) is not None
        is_larger = is_theirs and sizes_of(expected)["peak"] >= sizes_of(found)["peak"]
        return peaks(expected, found) if is_larger else (expected, found)

    return leave_out


def less_saved(expected: str, found: str) -> Texts:
    """Take from the CPU's peaks by how much more is saved for backward at the whole one."""
    more = saved_at_the_peak(expected) - saved_at_the_peak(found)
    if more <= 0:
        return expected, found
    return PEAK_SIZE.sub(lambda peak: f"{peak[1]}{bytes_of(peak[2]) - more:.0f} B", expected), found


def saved_at_the_peak(text: str) -> float:
    """Read how much of the peak is saved for backward."""
    found = SAVED.search(text)
    return 0.0 if found is None else bytes_of(found[1])


def _without_peaks(text: str) -> str:
    return STEP.sub(r"\1: ", SIZES.sub("", text))


def last_step(expected: str, found: str) -> Texts:
    """Leave out a step at the end that only one of both has."""
    return _without_last_step(expected, found), _without_last_step(found, expected)


def _without_last_step(text: str, other: str) -> str:
    text = MADE.sub("", text)
    steps, others = (re.findall(r"^  step \d+: .*\n", one, re.MULTILINE) for one in (text, other))
    return text.replace(steps[-1], "") if len(steps) == len(others) + 1 and others else text


def names_in_any_order(expected: str, found: str) -> Texts:
    """Leave out the order of names that follow one another with commas."""
    return NAMES.sub(_sorted_names, expected), NAMES.sub(_sorted_names, found)


def _sorted_names(names: re.Match[str]) -> str:
    return ", ".join(sorted(re.split(r", | and ", names[0])))
