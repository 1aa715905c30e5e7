"""Write counterparts.txt: for every public name, the PyTorch, JAX and NumPy name beside it.

    python docs/site/counterparts.py        (in an environment with PyTorch, JAX and NumPy)

The reference reads the stored table, so that building the site needs neither PyTorch nor JAX.
"""

from __future__ import annotations

import importlib
import runpy
from collections.abc import Iterator
from pathlib import Path

STORED = Path(__file__).with_name("counterparts.txt")
INDEX = Path(__file__).parents[2] / "lucid" / "public" / "index.py"

# A namespace of Lucid -> where its names are looked up, the first hit of each library counts.
PLACES = {
    "lucid": "torch jax.numpy jax jax.nn jax.scipy.special numpy",
    "Tensor": "torch.Tensor jax.Array numpy.ndarray",
    "func": "torch.func jax jax.lax jax.scipy.optimize",
    "linalg": "torch.linalg jax.numpy.linalg jax.scipy.linalg numpy.linalg",
    "fft": "torch.fft jax.numpy.fft numpy.fft",
    "special": "torch.special jax.scipy.special",
    "random": "torch jax.random numpy.random",
    "nn.functional": "torch.nn.functional jax.nn",
    "nn.init": "torch.nn.init jax.nn.initializers",
    "numpy": "jax.numpy numpy",
    "numpy.linalg": "jax.numpy.linalg numpy.linalg",
    "numpy.fft": "jax.numpy.fft numpy.fft",
    "numpy.random": "numpy.random",
    "testing": "torch.testing",
}
OTHERS = "autograd autograd.functional autograd.forward_ad distributions nn nn.utils nn.utils.rnn \
nn.utils.prune nn.utils.parametrize nn.utils.parametrizations optim optim.lr_scheduler \
optim.swa_utils utils.data utils.checkpoint distributed"
# What has another name, or a namesake that does something else ("-" removes it).
BY_HAND = {
    "lucid.jit": "torch.compile jax.jit numba.njit",
    "lucid.compile": "torch.compile jax.jit",
    "lucid.profile": "torch.profiler.profile jax.profiler.trace",
    "lucid.Tensor": "torch.Tensor jax.Array numpy.ndarray",
    "lucid.export": "torch.export.export jax.export.export",
    "lucid.memory": "-",
    "lucid.save": "torch.save numpy.savez",
    "lucid.load": "torch.load numpy.load",
    "lucid.no_grad": "torch.no_grad jax.lax.stop_gradient",
    "lucid.ir.trace": "torch.fx.symbolic_trace jax.make_jaxpr",
    "lucid.ir.Graph": "torch.fx.Graph jax.extend.core.Jaxpr",
    "lucid.ir.Primitive": "jax.extend.core.Primitive",
    "lucid.extend.Primitive": "jax.extend.core.Primitive",
    "lucid.autograd.Function": "torch.autograd.Function jax.custom_vjp",
    "lucid.func.custom_vjp": "torch.autograd.Function jax.custom_vjp",
    "lucid.func.custom_jvp": "torch.autograd.Function jax.custom_jvp",
    "lucid.func.checkpoint": "torch.utils.checkpoint.checkpoint jax.checkpoint",
    "lucid.func.associative_scan": "jax.lax.associative_scan",
    "lucid.func.root": "jax.lax.custom_root",
    "lucid.func.linear_solve": "torch.linalg.solve jax.lax.custom_linear_solve",
    "lucid.func.map": "jax.lax.map",
    "lucid.func.odeint": "jax.experimental.ode.odeint",
    "lucid.utils.progress": "tqdm.tqdm",
    "lucid.Tensor.at": "jax.numpy.ndarray.at",
    "lucid.Tensor.graph": "torch.fx.symbolic_trace jax.make_jaxpr",
}


def names() -> dict[str, list[str]]:
    """Return the public names of each namespace, from the index."""
    index = runpy.run_path(str(INDEX))
    found = {
        space: [entry.partition(":")[0] for text in table.values() for entry in text.split()]
        for space, table in index["NAMES"].items()
    }
    in_place = [e.partition(":")[0] for t in index["INPLACE"].values() for text in t.values()
                for e in text.split()]  # fmt: skip
    found["Tensor"] = sorted({*found["Tensor"], *in_place})
    return found


def lookup(place: str, name: str) -> bool:
    """True if a module or class of another library has the name."""
    parts = place.split(".")
    for n in range(len(parts), 0, -1):
        try:
            owner = importlib.import_module(".".join(parts[:n]))
        except ImportError:
            continue
        for part in parts[n:]:
            owner = getattr(owner, part, None)
        return owner is not None and hasattr(owner, name)
    return False


def counterparts(space: str, name: str) -> Iterator[str]:
    places = PLACES.get(space) or (f"torch.{space}" if space in OTHERS.split() else "")
    seen = set()
    for place in places.split():
        library = place.partition(".")[0]
        if library not in seen and lookup(place, name):
            seen.add(library)
            yield f"{place}.{name}"


def main() -> None:
    lines = []
    for space, found in names().items():
        prefix = "lucid" if space == "lucid" else f"lucid.{space}"
        for name in found:
            own = f"{prefix}.{name}"
            others = BY_HAND.get(own) or " ".join(counterparts(space, name))
            if others not in ("", "-"):
                lines.append(f"{own} {others}")
    STORED.write_text("\n".join(sorted(set(lines))) + "\n")


if __name__ == "__main__":
    main()
