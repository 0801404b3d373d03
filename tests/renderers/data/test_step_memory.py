"""The memory of whole steps as JSON: each device by itself."""

import json

from msgspec.structs import replace
from step_record import FORWARD, step_record, two_devices

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


def test_of_equal_blocks_the_odd_one_is_named() -> None:
    """With how many times the others it is; a row of one thing has none."""
    record = step_record()
    alive = tuple(
        replace(record.alive[0], name="weight", num_bytes=size, made=replace(FORWARD, module=f"h.{place}"))
        for place, size in enumerate((400, 410, 4000, 390))
    )
    groups = json.loads(render_step_memory_json(replace(record, alive=alive), None, "module"))["groups"]

    assert [(one["label"], one["times"], one["odd_one"]) for one in groups] == [
        ("h.0-3", 4, {"name": "h.2", "times": 10.0})
    ]


def test_a_record_that_names_no_device_lists_none() -> None:
    """One of an earlier release."""
    document = json.loads(render_step_memory_json(step_record(), None, "module"))

    assert (document["on"], document["devices"]) == (None, [])
