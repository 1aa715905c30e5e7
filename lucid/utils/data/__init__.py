"""Datasets, samplers and the DataLoader, as in `torch.utils.data`."""

from lucid.utils.data.collate import default_collate, default_convert
from lucid.utils.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from lucid.utils.data.loader import DataLoader
from lucid.utils.data.samplers import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from lucid.utils.data.workers import WorkerError, get_worker_info

__all__ = [
    "BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "IterableDataset",
    "RandomSampler", "Sampler", "SequentialSampler", "StackDataset", "Subset",
    "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler", "WorkerError",
    "default_collate", "default_convert", "get_worker_info", "random_split",
]  # fmt: skip
