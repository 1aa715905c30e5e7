"""ir.diff: compare two Graphs by a diff of their texts."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from lucid.ir.graph import Graph
from lucid.public.declare import public


@dataclass(frozen=True)
class GraphDiff:
    """The lines of two Graphs: equal ones, removed ones (-) and added ones (+)."""

    lines: tuple[str, ...]

    @property
    def same(self) -> bool:
        return all(text.startswith("  ") for text in self.lines)

    def __bool__(self) -> bool:
        return not self.same

    def __repr__(self) -> str:
        return "the Graphs are equal" if self.same else "\n".join(self.lines)


@public("ir")
def diff(a: Graph, b: Graph) -> GraphDiff:
    """Compare two Graphs: equations are matched by what they compute, not by their numbers.

    >>> import lucid
    >>> a = lucid.ir.trace(lambda x: lucid.sin(x) * 2.0)(lucid.ones(3))
    >>> b = lucid.ir.trace(lambda x: lucid.cos(x) * 2.0)(lucid.ones(3))
    >>> lucid.ir.diff(a, b)
      graph lambda(x: f32[3]):
    -     f32[3] = sin x
    +     f32[3] = cos x
          f32[3] = mul %0 2.0
          return %1
    """
    first, second = (texts(graph) for graph in (a, b))
    matcher = difflib.SequenceMatcher(None, [k for k, _ in first], [k for k, _ in second], False)
    out: list[str] = []
    for tag, i, j, m, n in matcher.get_opcodes():
        if tag == "equal":
            out += [f"  {text}" for _, text in first[i:j]]
            continue
        out += [f"- {text}" for _, text in first[i:j]]
        out += [f"+ {text}" for _, text in second[m:n]]
    return GraphDiff(tuple(out))


def texts(graph: Graph) -> list[tuple[str, str]]:
    """The lines of a Graph without source lines: (without numbers of results, to be shown)."""
    out = []
    for text in str(graph.stripped()).splitlines():
        shown = re.sub(r"%\d+: (\S+) +=", r"\1 =", text)
        out.append((re.sub(r"%\d+", "%", shown), shown))
    return out
