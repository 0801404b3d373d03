"""The leaves of several modules, as one."""

from gradinspect.analyses.diff.folding import fold_leaves


def test_the_leaves_of_a_whole_module() -> None:
    """They are one, and modules that differ by their index too."""
    leaves = [f"h.{block}.{name}" for block in (2, 3) for name in ("weight", "bias")]

    assert list(fold_leaves([*leaves, "head.bias"], ["h.2", "h.3"])) == [
        ("h.2-3.*", leaves), ("head.bias", ["head.bias"])
    ]  # fmt: skip
