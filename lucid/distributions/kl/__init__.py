"""Kullback-Leibler divergences between distributions, dispatched on the pair of classes."""

from lucid.distributions.kl import mismatched_supports as mismatched_supports
from lucid.distributions.kl import mixed as mixed
from lucid.distributions.kl.registry import kl_divergence, register_kl

__all__ = ["kl_divergence", "register_kl"]
