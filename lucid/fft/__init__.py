"""lucid.fft: discrete Fourier transforms, with the names and arguments of torch.fft.

    fft, ifft, rfft, irfft, hfft, ihfft             along one axis `dim`, of length `n`
    fft2, ..., ihfft2                               along two axes, of lengths `s`
    fftn, ..., ihfftn                               along any axes
    fftfreq, rfftfreq, fftshift, ifftshift

A longer length pads with zeros, a shorter one truncates. `norm` is "backward" (1 / n in the
inverse), "ortho" (1 / sqrt(n) in both directions) or "forward". float32 gives complex64.
"""

from lucid.public.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
