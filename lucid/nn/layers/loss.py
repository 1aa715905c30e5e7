"""Losses as layers."""

from __future__ import annotations

import inspect
from typing import Any

import lucid.nn.functional as F
from lucid.nn.functional.arguments import resolve_reduction
from lucid.nn.layers.function_layer import FunctionLayer
from lucid.public.declare import public
from lucid.tensors.tensor import Tensor

LEGACY_ARGUMENTS = ("size_average", "reduce")


class Loss(FunctionLayer):
    """The base of losses; weights that are tensors are registered as buffers.

    The constructor takes settings in the order of the function, including PyTorch's deprecated
    arguments `size_average` and `reduce`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in self.settings:
            value = self.__dict__[name]
            if isinstance(value, Tensor):
                del self.__dict__[name]
                self.register_buffer(name, value)

    def bind_settings(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        names = inspect.signature(type(self).function).parameters
        order = [name for name in names if name in (*self.settings, *LEGACY_ARGUMENTS)]
        if len(args) > len(order):
            return super().bind_settings(args, kwargs)
        given = {**dict(zip(order, args)), **kwargs}
        older = [given.pop(name, None) for name in LEGACY_ARGUMENTS]
        settings = super().bind_settings((), given)
        if older != [None, None]:
            settings["reduction"] = resolve_reduction(type(self).__name__, None, *older)
        return settings

    def extra_repr(self) -> str:
        return "" if self.reduction == "mean" else f"reduction={self.reduction!r}"


@public("nn")
class L1Loss(Loss):
    """The mean of |input - target|."""

    function = F.l1_loss
    settings = {"reduction": "mean"}


@public("nn")
class MSELoss(Loss):
    """The mean of (input - target)²."""

    function = F.mse_loss
    settings = {"reduction": "mean"}


@public("nn")
class SmoothL1Loss(Loss):
    """Quadratic near 0 and linear beyond `beta`."""

    function = F.smooth_l1_loss
    settings = {"reduction": "mean", "beta": 1.0}


@public("nn")
class HuberLoss(Loss):
    """Quadratic near 0 and linear beyond `delta`."""

    function = F.huber_loss
    settings = {"reduction": "mean", "delta": 1.0}


@public("nn")
class BCELoss(Loss):
    """Binary cross entropy of probabilities."""

    function = F.binary_cross_entropy
    settings = {"weight": None, "reduction": "mean"}


@public("nn")
class BCEWithLogitsLoss(Loss):
    """Binary cross entropy of logits."""

    function = F.binary_cross_entropy_with_logits
    settings = {"weight": None, "reduction": "mean", "pos_weight": None}


@public("nn")
class CrossEntropyLoss(Loss):
    """Cross entropy of logits and class indices or class probabilities."""

    function = F.cross_entropy
    settings = {"weight": None, "ignore_index": -100, "reduction": "mean", "label_smoothing": 0.0}


@public("nn")
class NLLLoss(Loss):
    """Minus the log-probability of the target class."""

    function = F.nll_loss
    settings = {"weight": None, "ignore_index": -100, "reduction": "mean"}


@public("nn")
class KLDivLoss(Loss):
    """The Kullback-Leibler divergence of log-probabilities from a target."""

    function = F.kl_div
    settings = {"reduction": "mean", "log_target": False}


@public("nn")
class PoissonNLLLoss(Loss):
    """Minus the log-likelihood of counts."""

    function = F.poisson_nll_loss
    settings = {"log_input": True, "full": False, "eps": 1e-8, "reduction": "mean"}


@public("nn")
class GaussianNLLLoss(Loss):
    """Minus the log-likelihood of normal variables."""

    function = F.gaussian_nll_loss
    settings = {"full": False, "eps": 1e-6, "reduction": "mean"}


@public("nn")
class SoftMarginLoss(Loss):
    """log(1 + exp(-target · input))."""

    function = F.soft_margin_loss
    settings = {"reduction": "mean"}


@public("nn")
class HingeEmbeddingLoss(Loss):
    """A distance for similar pairs, a hinge for the others."""

    function = F.hinge_embedding_loss
    settings = {"margin": 1.0, "reduction": "mean"}


@public("nn")
class MarginRankingLoss(Loss):
    """A hinge on the order of two inputs."""

    function = F.margin_ranking_loss
    settings = {"margin": 0.0, "reduction": "mean"}


@public("nn")
class CosineEmbeddingLoss(Loss):
    """A hinge on the cosine of two vectors."""

    function = F.cosine_embedding_loss
    settings = {"margin": 0.0, "reduction": "mean"}


@public("nn")
class MultiMarginLoss(Loss):
    """A hinge between the target class and all others."""

    function = F.multi_margin_loss
    settings = {"p": 1, "margin": 1.0, "weight": None, "reduction": "mean"}


@public("nn")
class MultiLabelMarginLoss(Loss):
    """A hinge between target classes and all others."""

    function = F.multilabel_margin_loss
    settings = {"reduction": "mean"}


@public("nn")
class MultiLabelSoftMarginLoss(Loss):
    """Binary cross entropy over labels."""

    function = F.multilabel_soft_margin_loss
    settings = {"weight": None, "reduction": "mean"}


@public("nn")
class TripletMarginLoss(Loss):
    """A hinge between the distances to a positive and a negative."""

    function = F.triplet_margin_loss
    settings = {"margin": 1.0, "p": 2.0, "eps": 1e-6, "swap": False, "reduction": "mean"}


@public("nn")
class TripletMarginWithDistanceLoss(Loss):
    """The triplet loss with a user-defined distance."""

    function = F.triplet_margin_with_distance_loss
    settings = {"distance_function": None, "margin": 1.0, "swap": False, "reduction": "mean"}


@public("nn")
class CTCLoss(Loss):
    """Connectionist temporal classification: the loss over all alignments of a target."""

    function = F.ctc_loss
    settings = {"blank": 0, "reduction": "mean", "zero_infinity": False}
