"""The tables that `run.py` prints: times with ratios, seconds to the first result, memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from workloads import Workload

COLD = "lucid, empty cache"
JITTED = "lucid.jit"  # the same step, compiled by `lucid.jit`
WARM_RATIO, MEMORY_RATIO = 0.5, 1.0


def cell(value: float | None, digits: int = 1) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


def verdict(value: float | None, target: float | None) -> str:
    if value is None or target is None:
        return ""
    return "pass" if value <= target else "FAIL"


def ratio(ours: float | None, others: Sequence[float | None]) -> float | None:
    known = [x for x in others if x is not None]
    return ours / min(known) if ours is not None and known else None


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as they need to be, the first one to the left."""
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]
    lines = []
    for row in [heads, *rows]:
        rest = [f"{text:>{width}}" for text, width in zip(row[1:], widths[1:])]
        lines.append("  ".join([f"{row[0]:<{widths[0]}}", *rest]).rstrip())
    return "\n".join(lines)


def times(
    workloads: Sequence[Workload], systems: Sequence[str], results: Any, statistic: str
) -> str:
    rows = []
    for w in workloads:
        found = results[w.name]
        us, errors = found[statistic], found["errors"]
        ours = us.get("lucid")
        best = ratio(ours, [us.get(s) for s in systems if not s.startswith("lucid")])
        target = f"{w.ratio:.2f}" if w.ratio is not None else f"{w.limit} µs"
        passed = verdict(best, w.ratio) if w.ratio is not None else verdict(ours, w.limit)
        cells = ["fails" if s in errors else cell(us.get(s)) for s in systems]
        own = cell(ratio(ours, [us.get(JITTED)]), 2)
        limit = found.get("limit")  # of the machine, in µs; see limits.py
        bound = [cell(limit, 1), found.get("bound", ""), cell(ratio(ours, [limit]), 1)]
        rows.append([w.title, *cells, cell(best, 2), target, passed, own, *bound])
    heads = [f"µs a step, {statistic}", *systems, "ratio", "target", "", "/jit"]
    return table([*heads, "limit", "by", "/limit"], rows)


def starts(workloads: Sequence[Workload], systems: Sequence[str], results: Any) -> str:
    rows = []
    for w in workloads:
        start = results[w.name]["start"]
        warm, cold, jax = (start.get(s) for s in ("lucid", COLD, "jax"))
        passed = [verdict(ratio(warm, [jax]), WARM_RATIO), verdict(ratio(cold, [jax]), w.cold)]
        cells = [cell(start.get(s), 2) for s in (COLD, *systems)]
        ratios = [cell(ratio(x, [jax]), 2) for x in (warm, cold)]
        rows.append([w.title, *cells, ratios[0], passed[0], ratios[1], passed[1]])
    heads = ["seconds to the first result", COLD, *systems]
    return table([*heads, "warm/jax", f"{WARM_RATIO:.2f}", "cold/jax", ""], rows)


def memory(workloads: Sequence[Workload], systems: Sequence[str], results: Any) -> str:
    rows = []
    for w in workloads:
        peaks = results[w.name]["megabytes"]
        against = ratio(peaks.get("lucid"), [peaks.get("jax")])
        cells = [cell(peaks.get(s), 0) for s in systems]
        rows.append([w.title, *cells, cell(against, 2), verdict(against, MEMORY_RATIO)])
    return table(["peak memory, MB", *systems, "/jax", f"{MEMORY_RATIO:.2f}"], rows)


def remarks(workloads: Sequence[Workload], results: Any) -> list[str]:
    lines = []
    for w in workloads:
        found = results[w.name]
        lines += [f"{w.name}: {system}: {error}" for system, error in found["errors"].items()]
        if found["disagreement"]:
            lines.append(f"{w.name}: the results DISAGREE: {found['disagreement']}")
    return lines


def report(
    workloads: Sequence[Workload], systems: Sequence[str], results: Any, statistic: str = "median"
) -> str:
    """All tables for the workloads that were measured."""
    parts = []
    if workloads:
        parts = [times(workloads, systems, results, statistic)]
        parts += [f(workloads, systems, results) for f in (starts, memory)]
        parts += ["\n".join(remarks(workloads, results))]
    if "programs" in results:
        parts.append(results["programs"]["text"])
    load = " ".join(f"{x:.1f}" for x in os.getloadavg())
    parts.append(f"load of the machine in the last 1, 5, 15 minutes: {load}; {os.cpu_count()} CPUs")
    return "\n\n".join(part for part in parts if part)
