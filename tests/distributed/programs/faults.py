"""Ways in which a job goes wrong: faults.py <what> [rank]."""

from __future__ import annotations

import os
import signal
import sys
import time

import lucid
import lucid.distributed as dist
from lucid.distributed.runtime import runtime
from lucid.errors import CollectiveMismatchError

what, bad = sys.argv[1], int(sys.argv[2]) if sys.argv[2:] else 1
R, N = dist.rank(), dist.world_size()
x = lucid.ones(3)
W = lucid.eye(3)


@lucid.jit
def compiled(x):
    first = dist.all_reduce(x * 2.0)  # in flight while the products are computed
    return first + dist.all_reduce(W @ (W @ x))


def mismatch(kind):
    if kind == "op":
        dist.all_gather(x) if bad == R else dist.all_reduce(x)
    elif kind == "shape":
        dist.all_reduce(lucid.ones(4) if bad == R else x)
    elif kind == "dtype":
        dist.all_reduce(lucid.ones(3, dtype="float64") if bad == R else x)
    elif kind == "order":
        first, second = (dist.all_reduce, dist.all_gather)
        for f in (second, first) if bad == R else (first, second):
            f(x)


compiled(x)
compiled(x)

if what == "raise":
    if bad == R:
        raise ValueError("the data of this rank are bad")
    dist.all_reduce(x)
elif what == "raise-compiled":
    if bad == R:
        raise ValueError("the data of this rank are bad")
    compiled(x)
elif what == "kill":
    if bad == R:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(x)
elif what == "kill-inside":
    if bad == R:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    else:
        time.sleep(1.0)
    compiled(x)
    dist.all_gather(x)
elif what == "exit":
    if bad == R:
        sys.exit(3)
    dist.all_reduce(x)
elif what in ("op", "order"):
    mismatch(what)
elif what == "mismatches":
    for kind in ("op", "shape", "dtype", "order"):
        try:
            mismatch(kind)
        except CollectiveMismatchError as error:  # on all ranks, before anything is sent
            print(f"{kind} on rank {R}: {error}\n", end="", flush=True)
            runtime().broken = ""
    sys.exit(5)
elif what == "message":
    # rank 1 sends another shape than rank 0 expects
    if R == 0:
        dist.recv(x, 1)
    elif R == 1:
        dist.send(lucid.ones(2, 2), 0)
elif what == "groups":
    pair = dist.new_group([0, 1])
    dist.all_reduce(x, group=pair) if R == 0 else dist.all_reduce(x)
elif what == "timeout":
    dist.init(timeout=1.0)
    if bad == R:
        time.sleep(20)
    dist.all_reduce(x)
elif what == "interrupt":
    if bad != R:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
        compiled(x)
    time.sleep(20)
time.sleep(20.0)
print(f"rank {R} has come to the end\n", end="", flush=True)
