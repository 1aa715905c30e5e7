"""Neural networks: layers as Modules, and the functions they are made of."""

from lucid.nn import functional as functional
