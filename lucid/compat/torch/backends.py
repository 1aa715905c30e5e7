"""torch.backends and torch.backends.cudnn: switches for libraries that are not used."""

from types import SimpleNamespace

from lucid.compat.torch.cuda import is_available

__all__ = ["cudnn", "is_available", "mkldnn", "mps", "openmp"]

enabled = benchmark = deterministic = allow_tf32 = False
cudnn = SimpleNamespace(
    enabled=False, benchmark=False, deterministic=True, allow_tf32=False,
    is_available=is_available, version=lambda: None,
)  # fmt: skip
mps = SimpleNamespace(is_available=is_available, is_built=is_available)
mkldnn = SimpleNamespace(is_available=is_available)
openmp = SimpleNamespace(is_available=is_available)
cuda = SimpleNamespace(matmul=SimpleNamespace(allow_tf32=False), is_built=is_available)
