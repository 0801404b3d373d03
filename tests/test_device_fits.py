"""Reports of `fit` on two devices are the same but for what follows from the device."""

from device_fits import fit_differences

REPORT = """\
Peak: 54.0 KiB{on} (measured), gan.py
  backward of step 1, AddmmBackward0, {operator}, module d.2
  gan.py:21  loss = d(fake)

{others}at the peak{on}, by kind
  saved for backward  43.8 KiB  {percent}%
  temporary  8.4 KiB  16%

Not counted: {rest}
"""
ON_CPU = REPORT.format(on="", operator="aten.sum", others="", percent="81", rest="rounding")
ON_DEVICE = REPORT.format(
    on=" on cpu",
    operator="aten.empty",
    others="peak of each device\n  cpu  step 1  54.0 KiB\n\n",
    percent="80",
    rest="",
)


def test_reports_of_fit_are_the_same_but_for_the_device() -> None:
    """Where the peak is named, and what else there is, follows from the device."""
    assert list(fit_differences(ON_CPU, ON_DEVICE)) == []


def test_a_part_of_the_peak_that_is_elsewhere_is_a_difference() -> None:
    """As is another sentence."""
    less = ON_DEVICE.replace("80%", "8%") + "Something else.\n"

    assert list(fit_differences(ON_CPU, less)) == [
        "~saved for backward is 81% of one peak, and 8% of the other",
        "+Something else.",
    ]


def test_another_peak_is_a_difference() -> None:
    """What it is made of is then another, too."""
    more = ON_DEVICE.replace("80%", "8%").replace("54.0 KiB on", "74.0 KiB on")

    assert list(fit_differences(ON_CPU, more)) == ["-peak: 55296 B", "+peak: 75776 B"]


STEPS = """\
Peak: 9.0 KiB (measured), a.py
  {moment}, aten.mm

alive over time
  step 1: peak {} in forward, {} at its end
"""


def test_each_step_has_its_peak_and_its_end() -> None:
    """One that is elsewhere is a difference where all peaks are the same; what other devices hold is not."""
    on_cpu = STEPS.format("8.0 KiB", "4.0 KiB", moment="forward of step 2")
    others = "peak of each device\n  sim:0  forward of step 1  8.0 KiB\n  cpu  forward of step 1  7.0 KiB\n\n"

    for on_device, expected in (
        (STEPS.format("8.0 KiB", "4.0 KiB", moment="backward of step 1"), []),
        (
            STEPS.format("5.0 KiB", "4.0 KiB", moment="forward of step 2"),
            ["-peak of step 1: 8192 B", "+peak of step 1: 5120 B"],
        ),
        (
            STEPS.format("8.0 KiB", "8.0 KiB", moment="forward of step 2"),
            ["-end of step 1: 4096 B", "+end of step 1: 8192 B"],
        ),
        (others + STEPS.format("5.0 KiB", "1.0 KiB", moment="forward of step 2"), []),
    ):
        assert list(fit_differences(on_cpu, on_device)) == expected
