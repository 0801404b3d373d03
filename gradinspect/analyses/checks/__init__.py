"""The findings of `gradinspect check`: each judges what `capture.checks` has seen. No torch, no I/O."""
