"""profile: the time, bytes and flops of each instruction of programs that run inside a block."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from lucid.compiler.plan import executable
from lucid.compiler.plan.executable import Executable
from lucid.support.markup import table_html


class Row:
    """The totals of one instruction in a profile.

    label          its operations, and the user's line that they come from
    calls          how often it ran
    nanoseconds    total time
    bytes          total bytes read and written; 0 if unknown
    flops          total operations on numbers; a function such as exp counts as one
    """

    __slots__ = ("bytes", "calls", "flops", "label", "nanoseconds")

    def __init__(self, label: str) -> None:
        self.label = label
        self.calls = self.nanoseconds = self.bytes = self.flops = 0

    def add(self, calls: int, nanoseconds: int, traffic: tuple[int, int]) -> None:
        self.calls += calls
        self.nanoseconds += nanoseconds
        self.bytes += calls * traffic[0]
        self.flops += calls * traffic[1]

    @property
    def instruction(self) -> str:
        return self.label.split("  [")[0]

    @property
    def source(self) -> str:
        """The user's line as file:line, or "" if unknown."""
        return self.label.partition("  [")[2].rstrip("]")

    def __repr__(self) -> str:
        return f"<{self.label}: {self.calls} calls, {self.nanoseconds / 1000:.1f} µs>"


HEADER = ("µs", "calls", "µs a call", "MB", "GB/s", "GFLOP/s")


class Profile:
    """The result of `lucid.profile()`: `rows`, slowest first; its text is a table."""

    def __init__(self) -> None:
        self.programs: list[Executable] = []

    def watch(self, program: Executable) -> None:
        self.programs.append(program)
        program.numpy_times = {}
        for plan in program.plans():
            plan.profile(True)

    def end(self) -> None:
        for program in self.programs:
            program.saved_times, program.numpy_times = program.numpy_times or {}, None
            for plan in program.plans():
                plan.profile(False)

    @property
    def rows(self) -> list[Row]:
        found: dict[str, Row] = {}
        for label, calls, spent, traffic in self.timings():
            found.setdefault(label, Row(label)).add(calls, spent, traffic)
        return sorted((r for r in found.values() if r.calls), key=lambda r: -r.nanoseconds)

    def timings(self) -> Iterable[tuple[str, int, int, tuple[int, int]]]:
        for program in self.programs:
            yield from program_timings(program)

    def __str__(self) -> str:
        rows = self.rows
        lines = [(*HEADER, "line", "instruction")]
        for row in rows:
            us, ns = row.nanoseconds / 1000, max(row.nanoseconds, 1)
            moved = (f"{row.bytes / 1e6:.3f}", f"{row.bytes / ns:.1f}") if row.bytes else ("", "")
            speed = f"{row.flops / ns:.1f}" if row.flops else ""
            numbers = (f"{us:.1f}", str(row.calls), f"{us / row.calls:.2f}", *moved, speed)
            lines.append((*numbers, row.source, row.instruction))
        widths = [max(len(line[i]) for line in lines) for i in range(len(HEADER) + 1)]
        return "\n".join(table_line(line, widths) for line in lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [
            (f"{r.nanoseconds / 1000:.1f}", r.calls, f"{r.nanoseconds / 1000 / r.calls:.2f}",
             f"{r.bytes / 1e6:.3f}" if r.bytes else "", r.source, r.instruction)
            for r in self.rows
        ]  # fmt: skip
        return table_html("profile", (*HEADER[:4], "line", "instruction"), rows)

    def save(self, path: Any) -> None:
        """Write the profile as Chrome trace JSON, for chrome://tracing or ui.perfetto.dev.

        Every program is a row with one call of it: an instruction takes its mean time.
        """
        text = json.dumps({"traceEvents": list(self.trace_events()), "displayTimeUnit": "ns"})
        draft = f"{os.fspath(path)}.{os.getpid()}.draft"
        with open(draft, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(draft, path)

    def trace_events(self) -> Iterator[dict[str, Any]]:
        for number, program in enumerate(self.programs):
            at = 0.0
            events = []
            for label, calls, spent, (nbytes, flops) in program_timings(program):
                if not calls:
                    continue
                name, _, source = label.partition("  [")
                facts = {"calls": calls, "total us": spent / 1000, "line": source.rstrip("]"),
                         "bytes a call": nbytes, "operations a call": flops}  # fmt: skip
                mean = spent / calls / 1000
                events.append({"name": name, "cat": "instruction", "ph": "X", "pid": 1,
                               "tid": number, "ts": at, "dur": mean, "args": facts})  # fmt: skip
                at += mean
            if events:
                title = {"name": f"{program.graph.name} ({number})"}
                yield {"name": "thread_name", "ph": "M", "pid": 1, "tid": number, "args": title}
                yield from events


def program_timings(program: Executable) -> Iterator[tuple[str, int, int, tuple[int, int]]]:
    """Iterate over the label, calls, nanoseconds and traffic of each instruction of a program."""
    for plan in program.plans():
        for (label, calls, spent), traffic in zip(plan.timings(), plan.traffic):
            yield label, calls, spent, traffic
    for label, (calls, spent) in (program.numpy_times or program.saved_times).items():
        yield label, calls, spent, (0, 0)


def table_line(cells: tuple[str, ...], widths: list[int]) -> str:
    """A line of the table: numbers right-aligned, words left-aligned."""
    numbers = [cell.rjust(n) for cell, n in zip(cells[: len(HEADER)], widths)]
    return "  ".join([*numbers, cells[-2].ljust(widths[-1]), cells[-1]])


@contextmanager
def profile() -> Iterator[Profile]:
    """Time every instruction of the compiled programs that run inside the block.

    with lucid.profile() as p:
        step(x, y)
    print(p)
    """
    seen = Profile()
    for program in list(executable.LIVE):
        seen.watch(program)
    executable.CREATION_HOOKS.append(seen.watch)
    try:
        yield seen
    finally:
        executable.CREATION_HOOKS.remove(seen.watch)
        seen.end()
