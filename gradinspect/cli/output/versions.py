"""The versions of installed packages."""

import platform
from importlib import metadata


def versions_of_all() -> str:
    """Write the versions for a bug report, without importing torch."""
    ours, torch = (f"{package} {version_of(package)}" for package in ("gradinspect", "torch"))
    return f"{ours}, Python {platform.python_version()}, {torch}"


def version_of(package: str) -> str:
    """Return the version of a package; it may run from its folder."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
