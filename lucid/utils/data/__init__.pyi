# Written by `python -m lucid.public.build`.

import builtins as _b
import collections.abc as _abc
import typing as _t

import numpy as _np

from lucid.utils.data.collate import default_collate as default_collate
from lucid.utils.data.collate import default_convert as default_convert
from lucid.utils.data.dataset import ChainDataset as ChainDataset
from lucid.utils.data.dataset import ConcatDataset as ConcatDataset
from lucid.utils.data.dataset import Dataset as Dataset
from lucid.utils.data.dataset import IterableDataset as IterableDataset
from lucid.utils.data.dataset import StackDataset as StackDataset
from lucid.utils.data.dataset import Subset as Subset
from lucid.utils.data.dataset import TensorDataset as TensorDataset
from lucid.utils.data.dataset import random_split as random_split
from lucid.utils.data.loader import DataLoader as DataLoader
from lucid.utils.data.samplers import BatchSampler as BatchSampler
from lucid.utils.data.samplers import RandomSampler as RandomSampler
from lucid.utils.data.samplers import Sampler as Sampler
from lucid.utils.data.samplers import SequentialSampler as SequentialSampler
from lucid.utils.data.samplers import SubsetRandomSampler as SubsetRandomSampler
from lucid.utils.data.samplers import WeightedRandomSampler as WeightedRandomSampler
from lucid.utils.data.workers import WorkerError as WorkerError
from lucid.utils.data.workers import get_worker_info as get_worker_info


