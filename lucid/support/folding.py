"""folding: the text of a Graph with the equations of each scope in one line, for people to read."""

from __future__ import annotations

import re
from itertools import groupby

_SCOPE = re.compile(r"#[^#]*?:\d+  (?P<path>[^:]+)")  # `# train.py:12  blocks.0.norm1: LayerNorm`


def folded_text(text: str, depth: int = 1) -> str:
    """Return the text of a Graph, where runs of equations in one scope are a line each.

    depth    how many parts of a scope's path are told apart: 2 has `blocks.0` and `blocks.1`

    >>> print(folded_text('''graph f(x: f32[3]):
    ...     %0: f32[3] = mul x x           # f.py:1  energy
    ...     %1: f32[]  = sum[axes=(0,)] %0  # f.py:1  energy
    ...     return %1'''))
    graph f(x: f32[3]):
        %1: f32[] = [2 equations]  # energy
        return %1
    """
    lines = text.splitlines()
    out: list[str] = []
    for name, run in groupby(range(len(lines)), key=lambda i: scope_name(lines[i], depth)):
        some = list(run)
        if not name or len(some) == 1:
            out += [lines[i] for i in some]
            continue
        later = set(re.findall(r"%\d+", "\n".join(lines[some[-1] + 1 :])))
        left = [lines[i].split(" = ")[0] for i in some]
        made = [part.strip() for x in left for part in re.split(r",\s(?=%)", x)]
        kept = [part for part in made if part.split(":")[0] in later]
        out.append(f"    {', '.join(kept)} = [{len(some)} equations]  # {name}")
    return "\n".join(out)


def scope_name(line: str, depth: int) -> str:
    """Return the first parts of the path of an equation's scope, "" for none."""
    found = _SCOPE.search(line)
    return "" if found is None else ".".join(re.split(r"[./]", found["path"].strip())[:depth])
