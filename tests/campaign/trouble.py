"""The forms of test_robustness.py: make trouble, then compare the next steps with a fresh model.

`python -m tests.campaign.trouble FORM AMOUNT SEED` prints what was found as JSON.
"""

from __future__ import annotations

import json
import linecache
import os
import random
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import lucid
from lucid import nn
from lucid.compiler.runtime import native_kernel
from lucid.tape.modes import current
from lucid.tape.node import active_recorders

PACKAGE = str(Path(lucid.__file__).parent)
RECORDING = ("recorder.py", "body.py", "jit.py", "path.py", "locks.py", "writes.py", "cut.py")


class Trainer:
    """A model with statistics and dropout, its optimizer, and a step, plain and jitted."""

    def __init__(self, number: int, width: int) -> None:
        self.width = width
        self.scale = 1.0 + number / 1000  # another program for every number
        self.model = nn.Sequential(
            nn.Linear(4, width, bias=False),
            nn.BatchNorm1d(width),
            nn.Tanh(),
            nn.Dropout(0.3),
            nn.Linear(width, 1),
        )
        self.optimizer = lucid.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        self.hook: Callable[[], None] = lambda: None
        self.jitted = lucid.jit(self.step)

    def step(self, x: Any, y: Any) -> Any:
        self.optimizer.zero_grad()
        loss = ((self.model(x) - y) ** 2).mean() * self.scale
        self.hook()
        loss.backward()
        self.hook()
        self.optimizer.step()
        return loss

    def copy(self) -> Trainer:
        """Return the same state in new tensors that no recording has seen."""
        other = Trainer(0, self.width)
        other.scale = self.scale
        other.model.load_state_dict(self.model.state_dict())
        other.optimizer.load_state_dict(self.optimizer.state_dict())
        return other


def batch(number: int) -> tuple[Any, Any]:
    x = np.random.default_rng(number).standard_normal((6, 4)).astype("float32")
    return lucid.tensor(x), lucid.tensor(x[:, :1] * 2)


def check_next_steps(trainer: Trainer, number: int) -> None:
    """Compare two jitted steps with eager steps of a copy, and look for what was left behind."""
    modes = current()
    assert modes.no_observers and modes.grad and not modes.transforms, "a mode was left switched"
    if threading.active_count() == 1:
        assert not active_recorders, "a recording has not ended"
    for k in range(2):
        x, y = batch(1000 * number + k)
        expected = trainer.copy()
        state = lucid.random.get_rng_state()
        found = trainer.jitted(x, y).item()
        lucid.random.set_rng_state(state)
        wanted = expected.step(x, y).item()
        assert abs(found - wanted) <= 1e-4 * (1 + abs(wanted)), f"loss {found}, not {wanted}"
        for p, q in zip(trainer.model.parameters(), expected.model.parameters()):
            np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), 1e-3, 1e-4)
        for p, q in zip(trainer.model.buffers(), expected.model.buffers()):
            np.testing.assert_allclose(p.numpy(), q.numpy(), 1e-4, 1e-5)


def check_other_thread() -> None:
    """A lock that was left locked stops the recordings of other threads."""
    found: list[Any] = []

    def work() -> None:
        found.append(lucid.jit(lambda x: x * 2 + lucid.rand(3) * 0)(lucid.ones(3)).tolist())

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(60)
    assert found == [[2.0, 2.0, 2.0]], "a lock was left locked"


def survive(trainer: Trainer, number: int, trouble: Callable[[], None], report: Any) -> None:
    """Run `trouble`, which raises KeyboardInterrupt or not, and check what comes after."""
    place = ""
    try:
        trouble()
    except KeyboardInterrupt as error:
        report["troubles"] += 1
        frames = traceback.extract_tb(error.__traceback__)[-4:]
        place = " > ".join(f"{Path(f.filename).name}:{f.lineno}" for f in frames)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.settrace(None)
    try:
        check_next_steps(trainer, number)
        check_other_thread()
    except Exception as error:
        report["wrong"].append(f"{number}: {type(error).__name__}: {str(error)[:300]} at {place}")


def interrupted(*_: Any) -> None:
    raise KeyboardInterrupt


def interrupt_anywhere(amount: int, rng: random.Random, report: Any) -> None:
    """Interrupt three steps (recorded, compiled, run) and a save at random times."""
    signal.signal(signal.SIGALRM, interrupted)
    usual, file = 0.3, Path(os.environ["LUCID_CACHE_DIR"]).with_name("model.lucid")
    for number in range(amount):
        trainer = Trainer(number, rng.randrange(8, 40))
        x, y = batch(number)

        def trouble(trainer: Trainer = trainer, x: Any = x, y: Any = y) -> None:
            nonlocal usual
            begin = time.perf_counter()
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-4, usual))
            for _ in range(3):
                trainer.jitted(x, y)
            trainer.step(x, y)
            lucid.save(trainer.model.state_dict(), file)
            signal.setitimer(signal.ITIMER_REAL, 0)
            usual = 0.8 * usual + 0.2 * (time.perf_counter() - begin)

        survive(trainer, number, trouble, report)


def interrupt_kernels(amount: int, rng: random.Random, report: Any) -> None:
    """Interrupt the compilation of one small kernel, then see that LLVM's lock is free."""
    from llvmlite.binding import ffi

    text = "define void @k(ptr %args, i64 %lo, i64 %hi) {{\n  ret void\n  ; {}\n}}\n"
    native_kernel.load(["k"], text.format(-1))
    signal.signal(signal.SIGALRM, interrupted)
    usual = 0.004
    for number in range(amount):
        begin = time.perf_counter()
        try:
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, usual))
            native_kernel.load(["k"], text.format(number))
            signal.setitimer(signal.ITIMER_REAL, 0)
            usual = 0.9 * usual + 0.1 * (time.perf_counter() - begin)
        except KeyboardInterrupt:
            report["troubles"] += 1
        except Exception as error:
            report["wrong"].append(f"{number}: {type(error).__name__}: {error}")
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        if ffi.lib._lock._lock._is_owned():
            report["wrong"].append(f"{number}: LLVM's lock was left locked")
            return


def leaves_with(frame: Any) -> bool:
    """True at the end of a `with` statement, where Python calls `__exit__` before it looks for
    signals: an exception there, which only a tracer can raise, would keep a lock locked."""
    code, line = frame.f_code, frame.f_lineno
    first = min(begin for begin, _, number in code.co_lines() if number == line)
    return frame.f_lasti > first and linecache.getline(code.co_filename, line).lstrip().startswith(
        "with "
    )


def interrupt_at_lines(amount: int, rng: random.Random, report: Any) -> None:
    """Interrupt the first step at a random line of the files that record, begin and end."""
    count, limit = 0, 4000

    def on_line(frame: Any, event: str, _: Any) -> Any:
        nonlocal count
        name = frame.f_code.co_filename
        if not name.startswith(PACKAGE) or not name.endswith(RECORDING):
            return None
        if event == "line" and not leaves_with(frame):
            count += 1
            if count == target:
                raise KeyboardInterrupt
        return on_line

    for number in range(amount):
        trainer = Trainer(number, 8)
        x, y = batch(number)
        count, target = 0, rng.randrange(1, limit)

        def trouble(trainer: Trainer = trainer, x: Any = x, y: Any = y) -> None:
            sys.settrace(on_line)
            trainer.jitted(x, y)

        survive(trainer, number, trouble, report)
        if count < target:
            limit = count


def raise_from_hooks(amount: int, rng: random.Random, report: Any) -> None:
    """Raise from the middle of the function, and from hooks of gradients and of modules."""
    for number in range(amount):
        trainer = Trainer(number, 8)
        left = [rng.randrange(1, 9)]

        def hook(*_: Any, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt

        trainer.hook = hook
        handles = [p.register_hook(hook) for p in trainer.model.parameters()]
        handles += [m.register_forward_hook(hook) for m in trainer.model]
        x, y = batch(number)
        survive(trainer, number, lambda t=trainer, x=x, y=y: t.jitted(x, y), report)
        left[0] = 0


def fork(amount: int, rng: random.Random, report: Any) -> None:
    """Fork children that record, draw and train, half of them while two threads compile."""
    stop = threading.Event()

    def compile_for_ever(number: int) -> None:
        while not stop.is_set():
            number += 2
            f = lucid.jit(lambda x, c=float(number): (lucid.exp(x * c) + lucid.rand(3)).sum())
            f(lucid.zeros(3))
            report["compiled"] = report.get("compiled", 0) + 1

    threads: list[Any] = []
    trainer = Trainer(1, 8)
    trainer.jitted(*batch(0))
    for number in range(amount):
        if number == amount // 2:
            for k in range(2):
                threads.append(threading.Thread(target=compile_for_ever, args=(k,), daemon=True))
                threads[-1].start()
        time.sleep(rng.uniform(0, 0.02))
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                check_next_steps(trainer, number)
                check_next_steps(Trainer(number, 8), number)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        report["troubles"] += 1
        wait_for(pid, number, report)
    stop.set()
    for thread in threads:
        thread.join(60)


def wait_for(pid: int, number: int, report: Any) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            if status:
                report["wrong"].append(f"{number}: the child ended with {status}")
            return
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    report["wrong"].append(f"{number}: the child hangs")


def threads(seconds: int, rng: random.Random, report: Any) -> None:
    """Let 16 threads train models with dropout, which all draw from one generator."""
    end = time.monotonic() + seconds
    shared = lucid.zeros(3)
    sys.setswitchinterval(1e-4)

    def work(number: int) -> None:
        steps = 0
        try:
            while time.monotonic() < end or not steps:
                trainer = Trainer(number + steps, 8 + number)
                bump = lucid.jit(lambda x, c=float(steps): (shared.add_(x * c) * 0).sum())
                for k in range(4):
                    assert np.isfinite(trainer.jitted(*batch(k)).item())
                    assert bump(lucid.ones(3)).item() == 0
                kept = lucid.nn.functional.dropout(lucid.ones(1000), 0.5).numpy()
                assert set(np.unique(kept)) <= {0.0, 2.0} and 300 < (kept > 0).sum() < 700
                steps += 1
        except Exception as error:
            report["wrong"].append(f"thread {number}, {steps}: {type(error).__name__}: {error}")
        report["troubles"] += steps

    running = [threading.Thread(target=work, args=(k,), daemon=True) for k in range(16)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(seconds + 120)
        if thread.is_alive():
            report["wrong"].append("a thread hangs")
    if not report["wrong"]:
        survive(Trainer(1, 8), 1, lambda: None, report)
        shared.fill_(1.0)
        shared.add_(1.0)
        assert shared.numpy().tolist() == [2.0] * 3


def main() -> None:
    form, amount, seed = sys.argv[1], int(float(sys.argv[2])), int(sys.argv[3])
    report: dict[str, Any] = {"troubles": 0, "wrong": []}
    globals()[form](amount, random.Random(seed), report)
    report["wrong"] = report["wrong"][:20]
    print(json.dumps(report))


if __name__ == "__main__":
    main()
