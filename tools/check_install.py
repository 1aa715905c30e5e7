"""Install the built packages into fresh environments and run a smoke suite there.

    python tools/check_install.py [3.11 3.12 3.13]      (default: every version that is present)

For each Python, two at a time: the wheels of Lucid and of what it depends on are collected in a
folder, then `pip install --no-index --find-links FOLDER lucid-autodiff` fills a new environment, in
which the smoke suite runs against the installed package. Versions that are not present are skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parent.parent
VERSIONS = ("3.11", "3.12", "3.13")
SMOKE = ("tests/test_seeds.py", "tests/project/test_exports.py")
PIP = ("-m", "pip", "--disable-pip-version-check", "--quiet")


def interpreter(version: str) -> str | None:
    """Return a Python of this version, from the path or from pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    places = [*sorted(pyenv.glob(f"{version}.*/bin/python")), shutil.which(f"python{version}")]
    for place in places:
        if (
            place
            and subprocess.run([place, "-c", "import venv"], capture_output=True).returncode == 0
        ):
            return str(place)
    return None


def run(*command: object, **options: object) -> None:
    subprocess.run([str(part) for part in command], check=True, **options)


def check(version: str) -> None:
    """Build, collect, install and test with one Python, if it is present."""
    python = interpreter(version)
    if python is None:
        print(f"Python {version}: not present, skipped")
        return
    start = time.perf_counter()
    folder = ROOT / "build" / "install" / version
    shutil.rmtree(folder, ignore_errors=True)
    wheels = folder / "wheels"
    run(python, "-m", "venv", folder)
    fresh = folder / "bin" / "python"
    run(fresh, *PIP, "wheel", "--wheel-dir", wheels, ROOT, "pytest")
    run(fresh, *PIP, "install", "--no-index", "--find-links", wheels, "lucid-autodiff", "pytest")
    shutil.copytree(ROOT / "tests", folder / "suite" / "tests")  # without the sources beside it
    shutil.copy(ROOT / "pyproject.toml", folder / "suite")
    environ = {**os.environ, "LUCID_CACHE_DIR": str(folder / "cache")}
    environ.pop("PYTHONPATH", None)
    smoke = [fresh, "-m", "pytest", "-q", "-p", "no:cacheprovider", *SMOKE]
    run(*smoke, cwd=folder / "suite", env=environ)
    seconds = time.perf_counter() - start
    print(f"Python {version}: installed from wheels and tested, {seconds:.0f} s")


def main() -> None:
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(check, sys.argv[1:] or VERSIONS))  # raises the first error


if __name__ == "__main__":
    main()
