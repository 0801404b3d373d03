"""Which files belong to installed packages, rather than to the program itself.

Packages are installed into the folders of an environment, and also into any folder that `pip install --target` is
given and PYTHONPATH names. In both an installer leaves a list of the files of each package: `*.dist-info/RECORD`.
"""

import os
import site
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from importlib.machinery import FileFinder
from os import listdir
from os.path import abspath, join, realpath
from pathlib import Path

# Paths that differ in case only, as in the drive letter on Windows, are the same file.
normal_case: Callable[[str], str] = os.path.normcase if os.name == "nt" else str
_open = open
_SEPARATOR = os.sep
_LIST = "RECORD"
_LISTS = ".dist-info"
_MOST_FILES = 65_536  # whose place is kept: each is asked for often


def with_links(paths: Iterable[str | Path | None]) -> tuple[str, ...]:
    """Return prefixes that end with the separator, also of what links lead to, the longest first."""
    known = [abspath(path) for path in paths if path]  # noqa: PTH100  # resolve() is what comes next
    every = dict.fromkeys(normal_case(join(path, "")) for one in known for path in (one, realpath(one)))  # noqa: PTH118
    return tuple(sorted(every, key=len, reverse=True))


def _of_the_environment() -> tuple[str, ...]:
    """Return the folders of installed packages: of this environment, its base, Debian's own and the user's.

    Not every folder of that name: a program may live in one.
    """
    paths = sysconfig.get_paths()
    prefixes = dict.fromkeys((sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix))
    packages = site.getsitepackages(list(prefixes))
    return with_links((paths["purelib"], paths["platlib"], *packages, site.getusersitepackages()))


ENVIRONMENT = _of_the_environment()


@lru_cache(maxsize=_MOST_FILES)
def folder_of_packages(file: str) -> str | None:
    """Return the folder that the package of a file was installed into, with a separator at its end.

    Returns:
        None if the file belongs to no installed package.
    """
    path = normal_case(file)
    for folder in ENVIRONMENT:
        if path.startswith(folder):
            return file[: len(folder)]
    try:
        return next((folder for folder in _folders_of_imports(file) if _is_listed(folder, file[len(folder) :])), None)
    except Exception:  # the program has put something in the place of what imports
        return None


def package_of(file: str) -> str | None:
    """Return the name of the installed package that a file is in, without those in it: `einops`."""
    folder = folder_of_packages(file)
    return None if folder is None else _first_part(file[len(folder) :])


def _folders_of_imports(file: str) -> Iterator[str]:
    """Yield the folders that a file is in and that Python has imported from, the innermost first."""
    finders = list(sys.path_importer_cache.values())
    searched = {normal_case(join(finder.path, "")) for finder in finders if type(finder) is FileFinder}  # noqa: PTH118
    end = len(file)
    while (end := file.rfind(_SEPARATOR, 0, end)) > 0:
        if normal_case(file[: end + 1]) in searched:
            yield file[: end + 1]


def _is_listed(folder: str, name: str) -> bool:
    """Return whether an installer has noted a file, or the package that it is in, as put into a folder."""
    first = _first_part(name).encode()
    start = first + (b"/" if len(first) < len(name.encode()) else b",")  # of a line: the path, a comma, a checksum
    return any(text.startswith(start) or b"\n" + start in text for text in _lists(folder))


def _lists(folder: str) -> Iterator[bytes]:
    for name in listdir(folder):  # noqa: PTH208  # `Path.iterdir` looks it up in `os`
        if name.endswith(_LISTS):
            try:
                with _open(join(folder, name, _LIST), "rb") as file:  # noqa: PTH118  # as above
                    yield file.read()
            except OSError:  # of a package that lists nothing
                continue


def _first_part(name: str) -> str:
    return name.partition(_SEPARATOR)[0]
