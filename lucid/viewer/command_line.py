"""command_line: `python -m lucid view | run | doctor | cache`."""

from __future__ import annotations

import argparse
import runpy
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

GREETING = """lucid {version}: tensors, transforms and a compiler over one readable IR
backend {backend}, {threads} threads, cache {cache}

  python -m lucid view script.py:f    a page that shows how f is compiled
  python -m lucid run script.py       run a script, and report what was compiled and where time went
  python -m lucid doctor              check this installation

`python -m lucid cache info|clear|verify` manages the compiled programs on disk."""


class UsageError(Exception):
    """An invalid command line."""


def main(arguments: Sequence[str]) -> int:
    """Run the command line; return the exit status."""
    chosen = parser().parse_args(arguments)
    try:
        return chosen.act(chosen)
    except UsageError as error:
        print(f"lucid: {error}", file=sys.stderr)
        return 1


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m lucid", description="Lucid's command line.")
    top.set_defaults(act=greet)
    commands = top.add_subparsers(title="commands")

    def add(name: str, act: Callable[[Any], int], help: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=help, description=help)
        command.set_defaults(act=act)
        return command

    shown = add("view", run_view, "Write a page that shows how a function is compiled; open it.")
    shown.add_argument("target", metavar="script.py:f", help="a script and a function in it")
    shown.add_argument("-o", "--output", help="the HTML file; otherwise the browser opens it")
    ran = add("run", run_script, "Run a script and report what was compiled and where time went.")
    ran.add_argument("--trace", metavar="FILE", help="write the profile as Chrome trace JSON")
    ran.add_argument("--rows", type=int, default=12, help="rows of the profile to print")
    ran.add_argument("script")
    ran.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the script")
    add("doctor", run_doctor, "Check this installation.")
    cached = add("cache", run_cache, "Manage the compiled programs on disk.")
    cached.add_argument("what", choices=("info", "clear", "verify"))
    return top


def greet(_: Any) -> int:
    from lucid.compiler.backends import selection
    from lucid.compiler.runtime import cache
    from lucid.compiler.runtime.threads import get_num_threads

    problem = cache.problem()
    facts = {
        "version": sys.modules["lucid"].__version__,
        "backend": selection.current().name,
        "threads": get_num_threads(),
        "cache": cache.directory() if problem is None else f"off ({problem})",
    }
    print(GREETING.format(**facts))
    return 0


# view


def run_view(chosen: Any) -> int:
    from lucid.viewer.show import view

    f, args, kwargs = target_of(chosen.target)
    page = view(f, *args, path=chosen.output, **kwargs)
    print(page.path)
    return 0


def target_of(target: str) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Return a function of a script, and the arguments that the script gives for it.

    For a function `f` the script defines `f_args`, a tuple or a function that returns one, and for
    keyword arguments `f_kwargs`, a dictionary or a function that returns one.
    """
    script, colon, name = target.rpartition(":")
    if not colon or not name:
        raise UsageError(f"{target!r} does not name a function: write script.py:f")
    if not Path(script).is_file():
        raise UsageError(f"there is no file {script!r}")
    sys.path.insert(0, str(Path(script).resolve().parent))
    names = runpy.run_path(script, run_name="lucid_view")
    if name not in names:
        raise UsageError(f"{script} defines no {name!r}")
    args, kwargs = hook(names, f"{name}_args", ()), hook(names, f"{name}_kwargs", {})
    if callable(names[name]) and f"{name}_args" not in names and f"{name}_kwargs" not in names:
        raise UsageError(
            f"{script} does not say what to call {name} with: define {name}_args, a tuple of "
            f"arguments or a function that returns one"
        )
    return names[name], args if isinstance(args, tuple) else (args,), dict(kwargs)


def hook(names: dict[str, Any], name: str, default: Any) -> Any:
    found = names.get(name, default)
    return found() if callable(found) else found


# run


def run_script(chosen: Any) -> int:
    from lucid.compiler.api import profile
    from lucid.compiler.runtime import cache

    if not Path(chosen.script).is_file():
        raise UsageError(f"there is no file {chosen.script!r}")
    sys.argv = [chosen.script, *chosen.arguments]
    sys.path.insert(0, str(Path(chosen.script).resolve().parent))
    begin, hits = time.perf_counter(), cache.info().hits
    with profile() as seen:
        try:
            runpy.run_path(chosen.script, run_name="__main__")
        finally:  # an error or sys.exit() goes on after the report
            spent = time.perf_counter() - begin
            print(report(chosen.script, seen, spent, cache.info().hits - hits, chosen.rows))
            if chosen.trace:
                seen.save(chosen.trace)
                print(f"trace written to {chosen.trace}")
    return 0


def report(script: str, seen: Any, spent: float, hits: int, n_rows: int) -> str:
    """Return the report of a run: what was compiled, why again, and where the time went."""
    from lucid.compiler.jit.jitted import _jitted

    rows = seen.rows
    native = sum(row.nanoseconds for row in rows) / 1e9
    used = [program for program in seen.programs if any(t[1] for t in timings(program))]
    lines = [
        "",
        f"lucid report of {script}",
        f"  {spent:.2f} s in all, {native:.2f} s of it in {len(used)} compiled programs "
        f"({sum(row.calls for row in rows):,} instructions); {hits} kernels came from disk",
    ]
    for jitted in sorted(_jitted, key=lambda f: f.name):
        if jitted.reasons:
            lines.append(f"  recompiled {len(jitted.reasons)} times: {jitted.why_recompiled()}")
    table = str(seen).splitlines()
    lines += ["", *["  " + line for line in table[: n_rows + 1]]] if rows else []
    if len(rows) > n_rows:
        lines.append(f"  ... and {len(rows) - n_rows} rows more")
    return "\n".join(lines)


def timings(program: Any) -> list[tuple[str, int, int]]:
    return [row for plan in program.plans() for row in plan.timings()]


# doctor and cache


def run_doctor(_: Any) -> int:
    from lucid.viewer.doctor import examine

    findings = examine()
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        print(f"{'ok  ' if finding.good else 'BAD '}  {finding.name.ljust(width)}  {finding.text}")
    return 0 if all(finding.good for finding in findings) else 1


def run_cache(chosen: Any) -> int:
    from lucid.compiler.runtime import cache

    state = cache.info()
    if chosen.what == "clear":
        cache.clear()
        print(f"removed {state.entries} entries, {state.bytes / 1e6:.1f} MB, from {state.path}")
        return 0
    if chosen.what == "verify":
        bad = cache.damaged()
        for path in bad:
            print(f"damaged: {path}")
        print(f"{state.entries - len(bad)} of {state.entries} entries are intact in {state.path}")
        return 1 if bad else 0
    print(f"folder   {state.path}")
    print(f"entries  {state.entries}")
    print(f"size     {state.bytes / 1e6:.1f} MB of {cache.limit() / 1e6:.0f} MB")
    print(f"state    {state.problem or 'in use'}")
    return 0
