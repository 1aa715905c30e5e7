"""Settings under which every optimizer and every schedule is tried."""

from __future__ import annotations

from typing import Any

OPTIMIZERS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.01}),
    ("SGD", {"lr": 1e-4, "momentum": 0.9, "maximize": True}),
    ("SGD", {"lr": 0.01, "momentum": 0.9, "dampening": 0.3}),
    ("SGD", {"lr": 0.01, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("ASGD", {"lr": 0.05}),
    ("ASGD", {"lr": 1e-4, "t0": 3, "lambd": 0.1, "weight_decay": 0.1, "maximize": True}),
    ("Adam", {}),
    ("Adam", {"lr": 0.1, "amsgrad": True}),
    ("Adam", {"weight_decay": 0.1, "maximize": True, "betas": (0.5, 0.8), "eps": 1e-3}),
    ("AdamW", {"lr": 0.1, "weight_decay": 0.3}),
    ("AdamW", {"amsgrad": True, "maximize": True}),
    ("NAdam", {}),
    ("NAdam", {"weight_decay": 0.1, "momentum_decay": 0.1}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    ("RAdam", {}),
    ("RAdam", {"weight_decay": 0.1, "maximize": True}),
    ("RAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True, "betas": (0.9, 0.9)}),
    ("Adamax", {}),
    ("Adamax", {"weight_decay": 0.1, "maximize": True}),
    ("RMSprop", {}),
    ("RMSprop", {"momentum": 0.9, "centered": True, "weight_decay": 0.1, "maximize": True}),
    ("Adagrad", {}),
    ("Adagrad", {"lr_decay": 0.1, "initial_accumulator_value": 0.5, "weight_decay": 0.1}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.7, "weight_decay": 0.1, "maximize": True}),
    ("Adafactor", {}),
    ("Adafactor", {"lr": 0.5, "weight_decay": 0.1, "beta2_decay": -0.5, "eps": (1e-8, 1e-2)}),
    ("Rprop", {}),
    ("Rprop", {"lr": 0.1, "etas": (0.3, 1.5), "step_sizes": (1e-3, 0.2), "maximize": True}),
    ("Lion", {"lr": 0.01}),
    ("Lion", {"lr": 0.01, "weight_decay": 0.1, "maximize": True}),
    ("Muon", {}),
    ("Muon", {"nesterov": False, "adjust_lr_fn": "match_rms_adamw", "lr": 0.1}),
]
COMPLEX = [case for case in OPTIMIZERS if case[0] not in ("Adafactor", "Muon")]

SCHEDULES: list[tuple[str, dict[str, Any]]] = [
    ("StepLR", {"step_size": 3, "gamma": 0.5}),
    ("MultiStepLR", {"milestones": [2, 5, 5, 9], "gamma": 0.3}),
    ("ConstantLR", {"factor": 0.5, "total_iters": 4}),
    ("LinearLR", {"start_factor": 0.25, "total_iters": 6}),
    ("LinearLR", {"start_factor": 1.0, "end_factor": 0.1, "total_iters": 5}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("PolynomialLR", {"total_iters": 7, "power": 2.0}),
    ("CosineAnnealingLR", {"T_max": 6, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 4}),
    ("CosineAnnealingWarmRestarts", {"T_0": 3, "T_mult": 2, "eta_min": 0.01}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 3}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 3, "step_size_down": 5,
                  "mode": "triangular2"}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 4, "mode": "exp_range",
                  "gamma": 0.9, "cycle_momentum": False}),
    ("OneCycleLR", {"max_lr": 0.5, "total_steps": 16}),
    ("OneCycleLR", {"max_lr": 0.5, "epochs": 4, "steps_per_epoch": 4, "three_phase": True,
                    "anneal_strategy": "linear", "pct_start": 0.25}),
]  # fmt: skip
