"""Long campaigns: one form of random programs, seed after seed, in one process without pytest.

`python -m tests.campaign.run compositions 100000 20000 found.txt` runs 20,000 seeds from 100,000 on
and writes every failure, at its smallest, to a file. The file ends with the seeds that were run, so
that the same command continues where an earlier one was stopped. Of one program in forty every path
is compiled by itself, with all of LLVM's passes.
"""

from __future__ import annotations

import gc
import resource
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from tests.campaign import stateful, test_compositions, test_followed, test_programs
from tests.campaign.programs import Program, make, shrink
from tests.campaign.tiers import sharing_programs, without_optimization

THOROUGH = 40  # one of so many programs goes through all of LLVM's passes on every path
REPORT = 50


def explained(program: Program, fails: Callable[[Program], str]) -> str:
    """Return the smallest program that fails, with its complaint; '' if the program is right."""
    if not fails(program):
        return ""
    small = shrink(program, lambda p: bool(fails(p)))
    return f"{small.text()}\n\ninputs {dict(small.inputs)}\n{fails(small)}"


def compositions(seed: int) -> str:
    return explained(make(seed), test_compositions.first_failure)


def followed(seed: int) -> str:
    return explained(make(seed), test_followed.disagreement)


def programs(seed: int) -> str:
    def complaint(p: Program) -> str:
        errors = (test_programs.failure(check, p) for check in test_programs.CHECKS)
        return next((f"{type(e).__name__}: {e}" for e in errors if e is not None), "")

    return explained(make(seed), complaint)


def with_state(seed: int) -> str:
    step = stateful.make(seed)
    if not stateful.failure(step):
        return ""
    small = stateful.shrink(step)
    return f"{stateful.SETUP}\n{small.text()}\n\n{stateful.failure(small)}"


FORMS = {
    "compositions": compositions,
    "followed": followed,
    "programs": programs,
    "stateful": with_state,
}


def next_seed(file: Path, first: int) -> int:
    """Return the first seed that is not yet in the report."""
    lines = file.read_text().splitlines() if file.exists() else []
    done = [int(line.split()[2]) for line in lines if line.startswith("seeds to ")]
    return max([first, *done])


def run(form: str, first: int, count: int, file: Path) -> int:
    """Run the seeds of a form; return how many of them failed."""
    failed, begin = 0, next_seed(file, first)
    for seed in range(begin, first + count):
        with ExitStack() as quicker:
            if seed % THOROUGH:
                quicker.enter_context(without_optimization())
                quicker.enter_context(sharing_programs())
            text = FORMS[form](seed)
        make.cache_clear()
        failed += bool(text)
        done = seed + 1
        with file.open("a") as out:
            if text:
                print(f"---- {form} {seed}\n{text}\n", file=out)
            if done % REPORT == 0 or done == first + count:
                used = resource.getrusage(resource.RUSAGE_SELF)
                cpu = used.ru_utime + used.ru_stime
                print(
                    f"seeds to {done} | {failed} of {done - begin} failed | "
                    f"{60 * (done - begin) / cpu:.0f} a CPU minute | {used.ru_maxrss >> 10} MB | "
                    f"{time.strftime('%H:%M:%S')}",
                    file=out,
                )
    return failed


def main() -> None:
    form, first, count, file = sys.argv[1:]
    warnings.simplefilter("ignore")
    gc.freeze()  # the library itself: going through it takes a tenth of a campaign
    with np.errstate(all="ignore"):
        sys.exit(bool(run(form, int(first), int(count), Path(file))))


if __name__ == "__main__":
    main()
