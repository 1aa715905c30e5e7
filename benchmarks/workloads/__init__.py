"""The workloads of `benchmarks/run.py`: a module each, the same work written for every library."""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple


class Workload(NamedTuple):
    """A row of the table.

    module      the module in this folder that holds it
    variant     the name of its table of systems there: system -> function(data) -> (step, result)
    ratio       what Lucid's time may be at most, as a multiple of the best other's
    limit       the same in µs, where a ratio says nothing
    cold        what its time from process start with an empty cache may be, as a multiple of JAX's
    tolerance   how far results may differ between libraries, relative to the largest element
    """

    name: str
    title: str
    module: str
    variant: str = "SYSTEMS"
    ratio: float | None = None
    limit: float | None = None
    cold: float = 1.5
    tolerance: float = 2e-3

    def load(self) -> tuple[dict[str, Any], Any]:
        """Its systems, and the function that makes its data from a NumPy generator."""
        module = importlib.import_module(f"workloads.{self.module}")
        systems = getattr(module, self.variant)
        return systems, getattr(module, self.variant.replace("SYSTEMS", "data").lower())


WORKLOADS = [
    Workload("mlp-small", "MLP 2-32-32-2, batch 32, SGD", "mlp", "SMALL_SYSTEMS", 0.4),
    Workload("mlp-small-inplace", "  the same, PyTorch style", "mlp", "SMALL_INPLACE_SYSTEMS", 0.4),
    Workload("mlp-small-eager", "  the same, not compiled", "mlp", "SMALL_EAGER_SYSTEMS", 0.5),
    Workload("mlp-medium", "MLP 784-128-10, batch 64, SGD", "mlp", "MEDIUM_SYSTEMS", 0.8),
    Workload(
        "mlp-medium-eager", "  PyTorch style, not compiled", "mlp", "MEDIUM_EAGER_SYSTEMS", 0.9
    ),
    Workload("mlp-large", "MLP 784-512-256-10, batch 128", "mlp", "LARGE_SYSTEMS", 1.0),
    Workload("gpt", "GPT 2 layers, d 128, T 64, batch 8", "gpt", ratio=1.0, cold=1.0),
    Workload("cnn", "CNN 28x28, 16, 32, batch 32", "cnn", ratio=1.0, cold=1.0),
    Workload("train-mlp", "train MLP 784-512-256-10, Adam", "networks", "MLP_SYSTEMS", 1.0),
    Workload("train-mlp-eager", "  not compiled", "networks", "MLP_EAGER_SYSTEMS", 1.0),
    # In float32 two pixels of a pool may be equal but for rounding; in float64 all agree to 2e-15.
    Workload(
        "train-cnn", "train CNN 28x28, 16, 32, Adam", "networks", "CNN_SYSTEMS", 1.0, tolerance=1e-2
    ),
    Workload(
        "train-cnn-eager", "  not compiled", "networks", "CNN_EAGER_SYSTEMS", 1.0, tolerance=1e-2
    ),
    Workload("train-gpt", "train GPT 2 x 128, T 64, Adam", "networks", "GPT_SYSTEMS", 1.0),
    Workload("train-gpt-eager", "  not compiled", "networks", "GPT_EAGER_SYSTEMS", 1.0),
    Workload("train-lstm", "train LSTM 64, 50 steps, Adam", "networks", "LSTM_SYSTEMS", 1.0),
    Workload("train-lstm-eager", "  not compiled", "networks", "LSTM_EAGER_SYSTEMS", 1.0),
    Workload("train-vae", "train VAE 784-400-20, Adam", "networks", "VAE_SYSTEMS", 1.0),
    Workload("train-vae-eager", "  not compiled", "networks", "VAE_EAGER_SYSTEMS", 1.0),
    Workload(
        "resnet-eager",
        "residual blocks 16, 32, Adam",
        "blocks",
        "RESNET_EAGER_SYSTEMS",
        0.9,
        tolerance=1e-2,
    ),
    Workload("dcgan-eager", "DCGAN 16x16, two Adams", "blocks", "DCGAN_EAGER_SYSTEMS", 0.9),
    Workload("style-eager", "style net 32x32, Adam", "blocks", "STYLE_EAGER_SYSTEMS", 0.9),
    Workload("cell-eager", "LSTMCell 64 x 100, Adam", "blocks", "CELL_EAGER_SYSTEMS", 0.9),
    Workload(
        "transformer-eager",
        "Transformer layer 128, Adam",
        "blocks",
        "TRANSFORMER_EAGER_SYSTEMS",
        0.9,
    ),
    Workload("adam", "Adam over 100 parameters, 32 x 32", "modules", "ADAM_SYSTEMS", 0.3),
    Workload("layer-norm", "layer norm, 512 x 256", "layers", "LAYER_NORM_SYSTEMS", 0.8),
    Workload("batch-norm", "batch norm, 32 x 32 x 14 x 14", "layers", "BATCH_NORM_SYSTEMS", 0.8),
    Workload("entropy", "cross entropy, 512 x 1000", "layers", "ENTROPY_SYSTEMS", 0.8),
    Workload("attention", "attention, 8 x 4 x 64 x 32", "layers", "SHORT_ATTENTION_SYSTEMS", 1.2),
    Workload("attention-long", "  4 x 8 x 256 x 64", "layers", "LONG_ATTENTION_SYSTEMS", 1.2),
    Workload("gelu-sin", "gradient of sum(gelu(xy)+sin(z)x)", "elements", ratio=0.5),
    Workload("logistic", "Hessian, logistic, d 50, n 1000", "logistic", ratio=0.8, tolerance=1e-9),
    Workload("per-sample", "gradients a sample, MLP, 256", "samples", ratio=1.0),
    Workload("ntk", "neural tangent kernel, MLP 64", "tangent_kernel", ratio=1.0),
    Workload("ntk-eager", "  not compiled", "tangent_kernel", "EAGER_SYSTEMS", 1.0),
    Workload("ntk-cnn", "  CNN 12x12, 8, 8", "tangent_kernel", "CNN_SYSTEMS", 1.0),
    Workload("ntk-cnn-eager", "  not compiled", "tangent_kernel", "CNN_EAGER_SYSTEMS", 1.0),
    Workload("gp", "Gaussian process, n 100, grad", "gaussian_process", ratio=1.0, tolerance=1e-8),
    Workload(
        "gp-eager", "  not compiled", "gaussian_process", "EAGER_SYSTEMS", 1.0, tolerance=1e-8
    ),
    Workload(
        "gp-small-eager",
        "  n 20, not compiled",
        "gaussian_process",
        "SMALL_EAGER_SYSTEMS",
        1.0,
        tolerance=1e-8,
    ),
    Workload("hvp", "Hessian-vector, MLP 64-128-128-10", "hvp", ratio=0.6),
    Workload("rosenbrock", "Rosenbrock gradient, n 1000", "rosenbrock", ratio=0.15, tolerance=1e-9),
    Workload("rk4", "RK4, 300 steps of 8 variables, grad", "rk4", ratio=0.5, tolerance=1e-8),
    Workload("rk4-eager", "  in a Python loop", "rk4", "EAGER_SYSTEMS", 0.2, tolerance=1e-8),
    Workload("lstm", "LSTM 64, 1,000 steps, batch 16, grad", "lstm", ratio=0.5),
    Workload("conv-first", "conv2d 28x28, 1 to 16, batch 32", "conv2d", "FIRST_SYSTEMS", 1.2),
    Workload("conv-second", "conv2d 14x14, 16 to 32, batch 32", "conv2d", "SECOND_SYSTEMS", 1.2),
    Workload("conv-middle", "conv2d 56x56, 64 to 64, batch 8", "conv2d", "MIDDLE_SYSTEMS", 1.2),
    Workload("conv-pixel", "  the same, 1x1", "conv2d", "PIXEL_SYSTEMS", 1.2),
    Workload("conv-stride", "  the same to 128, 3x3, stride 2", "conv2d", "STRIDE_SYSTEMS", 1.2),
    Workload("conv-depthwise", "  the same, depthwise", "conv2d", "DEPTHWISE_SYSTEMS", 1.2),
    Workload("conv-last", "conv2d 7x7, 256 to 256, batch 8", "conv2d", "LAST_SYSTEMS", 1.2),
    Workload("max-pool", "max_pool2d 3, stride 2, 56x56", "pooling", "MAX_SYSTEMS", 1.2),
    Workload("avg-pool", "avg_pool2d 3, stride 2, 56x56", "pooling", "AVERAGE_SYSTEMS", 1.2),
    Workload("add", "call of a + b, 10 elements", "calls", "ADD_SYSTEMS", limit=4.0),
    Workload("leaves", "call with 20 leaves", "calls", "LEAVES_SYSTEMS", limit=15.0),
]

# Only their first result is timed, by benchmarks/first_results.py.
FIRST_RESULTS = [
    Workload("scalar", "derivative of a scalar function", "first", "SCALAR_SYSTEMS"),
    Workload("gpt-deep", "GPT 12 layers", "gpt", "DEEP_SYSTEMS"),
    Workload("kmeans", "k-means, k 1,000, n 20,000, d 8", "first", "KMEANS_SYSTEMS"),
]
