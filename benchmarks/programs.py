"""1,000 distinct programs compiled, called once and dropped: the time, and what they leave behind.

python benchmarks/programs.py [COUNT]
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
COUNT, LIMIT = 1000, 300
MAX_SECONDS = 240.0  # after which fewer programs suffice


def resident_megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def program(number: int) -> Any:
    """A function whose operations spell the number in base 4, so that no two kernels are alike."""
    import lucid

    operations = [lucid.sin, lucid.tanh, lucid.exp, lambda x: x * x]
    digits = [number >> shift & 3 for shift in range(0, 12, 2)]

    def f(x: Any) -> Any:
        for digit in digits:
            x = operations[digit](x) + 0.5
        return x.sum()

    return f


def compile_and_drop(count: int) -> dict[str, float]:
    sys.path[:0] = [str(HERE.parent), str(HERE)]
    from workloads.lucid_jit import jit

    import lucid

    x = lucid.ones(1000)
    for number in range(4096 - 20, 4096):  # whatever is loaded once is loaded now
        jit(program(number))(x)
    gc.collect()
    before, start, done, seconds = resident_megabytes(), time.perf_counter(), 0, 0.0
    while done < count and seconds < MAX_SECONDS:
        jit(program(done))(x)
        done += 1
        seconds = time.perf_counter() - start
    gc.collect()
    return {"seconds": seconds, "megabytes": resident_megabytes() - before, "count": done}


def measure(python: str, folder: str) -> dict[str, Any]:
    """The measurement in a process of its own, with an empty cache."""
    environment = {**os.environ, "LUCID_CACHE_DIR": str(Path(folder) / "programs")}
    command = [python, str(Path(__file__).resolve()), str(COUNT)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        return {"text": f"programs: exit status {done.returncode}: {done.stderr.strip()[-200:]}"}
    facts = json.loads(done.stdout.splitlines()[-1])
    allowed = LIMIT * facts["count"] / COUNT
    verdict = "pass" if facts["megabytes"] < allowed else "FAIL"
    facts["text"] = (
        f"{facts['count']} programs compiled, called and dropped: {facts['seconds']:.1f} s, "
        f"{facts['megabytes']:.0f} MB left of {allowed:.0f} allowed: {verdict}"
    )
    return facts


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(compile_and_drop(int(sys.argv[1]))))
    else:
        with tempfile.TemporaryDirectory() as name:
            print(measure(sys.executable, name)["text"])
