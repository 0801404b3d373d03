"""The memory of whole steps as JSON: each device by itself."""

import json

from step_record import step_record, two_devices

from gradinspect.renderers.data.step_memory import render_step_memory_json


def test_each_device_has_its_own_figures() -> None:
    """The limit is meant for accelerators; the first is the one whose figures are at the top."""
    document = json.loads(render_step_memory_json(two_devices(), 4096, "module"))

    assert document["on"] == "cuda:1"
    assert not document["fits"]
    assert [(one["on"], one["peak_bytes"], one["fits"]) for one in document["devices"]] == [
        ("cuda:1", 7168, False), ("cpu", 9000, None), ("cuda:0", 3584, True)
    ]  # fmt: skip
    assert all(sum(one["by_kind"].values()) == one["peak_bytes"] for one in document["devices"])


def test_a_record_that_names_no_device_lists_none() -> None:
    """One of an earlier release."""
    document = json.loads(render_step_memory_json(step_record(), None, "module"))

    assert (document["on"], document["devices"]) == (None, [])
