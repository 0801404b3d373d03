"""Build the simulated device, once for each version of its source and of torch: some 25 CPU seconds.

The builds are kept where the package keeps its own files, so that a second run of the tests finds them.
"""

import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
EXTENSION, PRELOADED = "simulated_device_extension", "default_device.so"
SOURCES = (HERE / "device.cpp", HERE / "default_device.cpp")


class CannotBuildError(Exception):
    """There is no simulated device on this machine; says why."""


def missing() -> str | None:
    """Say what is needed to build it, and is not here."""
    if not sys.platform.startswith("linux"):
        return "it is loaded before torch, by LD_PRELOAD: Linux only"
    compiler = os.environ.get("CXX", "c++").split()[0]
    if shutil.which(compiler) is None:
        return f"there is no C++ compiler ({compiler!r}; Debian: apt-get install g++)"
    lacking = [name for name in ("ninja", "setuptools") if importlib.util.find_spec(name) is None]
    return f"pip install {' '.join(lacking)}" if lacking else None


def folder() -> Path:
    """Return where this build belongs; it has a name of its own for each source, torch and Python."""
    versions = [importlib.metadata.version("torch"), sysconfig.get_config_var("SOABI")]
    text = "".join(source.read_text() for source in SOURCES) + repr(versions)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "gradinspect" / "simulated_device" / hashlib.sha256(text.encode()).hexdigest()[:16]


def build() -> Path:
    """Build it if nobody has, and return its folder. Processes that need it at once wait for the first.

    Raises:
        CannotBuildError: It cannot be built here.
    """
    lacking = missing()
    if lacking is not None:
        raise CannotBuildError(lacking)
    built = folder()
    built.mkdir(parents=True, exist_ok=True)
    with (built / "one_at_a_time").open("w") as lock:  # torch takes "lock" for its own
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (built / PRELOADED).exists():
            done = subprocess.run(
                [sys.executable, __file__, str(built)], capture_output=True, text=True, check=False, env=environment()
            )
            if done.returncode != 0:
                raise CannotBuildError(f"the compiler failed:\n{done.stderr[-2000:]}")
    return built


def environment() -> dict[str, str]:
    """Return the environment of the build, in which programs of this environment are found."""
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "MAX_JOBS": "1"}


def load(built: Path) -> Any:
    """Load what was built into a process that has imported torch."""
    spec = importlib.util.spec_from_file_location(EXTENSION, built / f"{EXTENSION}.so")
    if spec is None or spec.loader is None:
        raise CannotBuildError(f"{built} has no {EXTENSION!r}")
    extension = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(extension)
    return extension


def compile_all(built: Path) -> None:
    """Compile both libraries; what `default_device` needs comes last, so its presence says that all is there."""
    from torch.utils import cpp_extension

    device, default_device = map(str, SOURCES)
    cpp_extension.load(EXTENSION, [device], extra_cflags=["-O1"], build_directory=str(built), is_python_module=False)
    include = [f"-I{path}" for path in cpp_extension.include_paths()]
    compiler = os.environ.get("CXX", "c++").split()
    words = [*compiler, "-std=c++20", "-shared", "-fPIC", "-O1", *include, default_device, "-o", str(built / PRELOADED)]
    subprocess.run(words, check=True)


if __name__ == "__main__":
    compile_all(Path(sys.argv[1]))
