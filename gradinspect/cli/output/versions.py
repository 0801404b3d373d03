"""The versions of installed packages."""

from importlib import metadata


def version_of(package: str) -> str:
    """Return the version of a package; it may run from its folder."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
