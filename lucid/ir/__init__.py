"""The IR: types, Graphs, primitives, the text form, and an interpreter."""

from lucid.public.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)

from lucid.ir.verify import verify as verify  # noqa: E402  the function, not its module
