"""Losses as layers."""

from __future__ import annotations

import inspect
from typing import Any

import lucid.nn.functional as F
from lucid.nn.functional.arguments import resolve_reduction
from lucid.nn.layers.function_layer import FunctionLayer
from lucid.public.declare import public

LEGACY_ARGUMENTS = ("size_average", "reduce")


class Loss(FunctionLayer):
    """The base of losses.

    The constructor takes settings in the order of the function, including `reduction` and PyTorch's
    deprecated arguments `size_average` and `reduce`.
    """

    def __init_subclass__(cls, function: Any = None, **settings: Any) -> None:
        if function is not None:
            settings["reduction"] = "mean"
        super().__init_subclass__(function, **settings)

    @classmethod
    def constructor_arguments(cls) -> dict[str, Any]:
        defaults = {**dict.fromkeys(LEGACY_ARGUMENTS), **cls.settings}
        order = inspect.signature(cls.function).parameters
        return {name: defaults[name] for name in order if name in defaults}

    def bind_settings(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        settings = super().bind_settings(args, kwargs)
        older = [settings.pop(name, None) for name in LEGACY_ARGUMENTS]
        if older != [None, None]:
            settings["reduction"] = resolve_reduction(type(self).__name__, None, *older)
        return settings

    def extra_repr(self) -> str:
        return "" if self.reduction == "mean" else f"reduction={self.reduction!r}"


@public("nn")
class L1Loss(Loss, function=F.l1_loss):
    """The mean of |input - target|."""


@public("nn")
class MSELoss(Loss, function=F.mse_loss):
    """The mean of (input - target)²."""


@public("nn")
class SmoothL1Loss(Loss, function=F.smooth_l1_loss, beta=1.0):
    """Quadratic near 0 and linear beyond `beta`."""


@public("nn")
class HuberLoss(Loss, function=F.huber_loss, delta=1.0):
    """Quadratic near 0 and linear beyond `delta`."""


@public("nn")
class BCELoss(Loss, function=F.binary_cross_entropy, weight=None):
    """Binary cross entropy of probabilities."""


@public("nn")
class BCEWithLogitsLoss(
    Loss, function=F.binary_cross_entropy_with_logits, weight=None, pos_weight=None
):
    """Binary cross entropy of logits."""


@public("nn")
class CrossEntropyLoss(
    Loss, function=F.cross_entropy, weight=None, ignore_index=-100, label_smoothing=0.0
):
    """Cross entropy of logits and class indices or class probabilities."""


@public("nn")
class NLLLoss(Loss, function=F.nll_loss, weight=None, ignore_index=-100):
    """Minus the log-probability of the target class."""


@public("nn")
class KLDivLoss(Loss, function=F.kl_div, log_target=False):
    """The Kullback-Leibler divergence of log-probabilities from a target."""


@public("nn")
class PoissonNLLLoss(Loss, function=F.poisson_nll_loss, log_input=True, full=False, eps=1e-8):
    """Minus the log-likelihood of counts."""


@public("nn")
class GaussianNLLLoss(Loss, function=F.gaussian_nll_loss, full=False, eps=1e-6):
    """Minus the log-likelihood of normal variables."""


@public("nn")
class SoftMarginLoss(Loss, function=F.soft_margin_loss):
    """log(1 + exp(-target · input))."""


@public("nn")
class HingeEmbeddingLoss(Loss, function=F.hinge_embedding_loss, margin=1.0):
    """A distance for similar pairs, a hinge for the others."""


@public("nn")
class MarginRankingLoss(Loss, function=F.margin_ranking_loss, margin=0.0):
    """A hinge on the order of two inputs."""


@public("nn")
class CosineEmbeddingLoss(Loss, function=F.cosine_embedding_loss, margin=0.0):
    """A hinge on the cosine of two vectors."""


@public("nn")
class MultiMarginLoss(Loss, function=F.multi_margin_loss, p=1, margin=1.0, weight=None):
    """A hinge between the target class and all others."""


@public("nn")
class MultiLabelMarginLoss(Loss, function=F.multilabel_margin_loss):
    """A hinge between target classes and all others."""


@public("nn")
class MultiLabelSoftMarginLoss(Loss, function=F.multilabel_soft_margin_loss, weight=None):
    """Binary cross entropy over labels."""


@public("nn")
class TripletMarginLoss(
    Loss, function=F.triplet_margin_loss, margin=1.0, p=2.0, eps=1e-6, swap=False
):
    """A hinge between the distances to a positive and a negative."""


@public("nn")
class TripletMarginWithDistanceLoss(
    Loss,
    function=F.triplet_margin_with_distance_loss,
    distance_function=None,
    margin=1.0,
    swap=False,
):
    """The triplet loss with a user-defined distance."""


@public("nn")
class CTCLoss(Loss, function=F.ctc_loss, blank=0, zero_infinity=False):
    """Connectionist temporal classification: the loss over all alignments of a target."""
