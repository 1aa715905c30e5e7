"""Save checkpoints until this program kills one of its ranks: saving.py <folder> <rank> <seed>."""

from __future__ import annotations

import os
import random
import signal
import sys

import numpy as np

import lucid.distributed as dist

folder, bad, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
R, N = dist.rank(), dist.world_size()
epoch = 1


def save() -> None:
    rows = np.full((2000 // N, 3), float(epoch))
    state = {"epoch": epoch, "w": np.full((500, 100), float(epoch)), "table": rows}
    dist.save_checkpoint(folder, state, sharded=["table"])


save()
if bad == R:
    signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    signal.setitimer(signal.ITIMER_REAL, random.Random(seed).uniform(0.05, 0.6))
while True:
    epoch += 1
    save()
