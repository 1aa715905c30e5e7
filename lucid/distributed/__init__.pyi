# Written by `python -m lucid.public.build`.

import builtins as _b
import collections.abc as _abc
import typing as _t

import numpy as _np

from lucid.distributed.bulk import pmap as pmap
from lucid.distributed.checkpoint import load_checkpoint as load_checkpoint
from lucid.distributed.checkpoint import save_checkpoint as save_checkpoint
from lucid.distributed.functions import all_gather as all_gather
from lucid.distributed.functions import all_reduce as all_reduce
from lucid.distributed.functions import all_to_all as all_to_all
from lucid.distributed.functions import barrier as barrier
from lucid.distributed.functions import broadcast as broadcast
from lucid.distributed.functions import gather as gather
from lucid.distributed.functions import recv as recv
from lucid.distributed.functions import reduce as reduce
from lucid.distributed.functions import reduce_scatter as reduce_scatter
from lucid.distributed.functions import scatter as scatter
from lucid.distributed.functions import send as send
from lucid.distributed.functions import sendrecv as sendrecv
from lucid.distributed.parallel import DataParallel as DataParallel
from lucid.distributed.parallel import data_parallel as data_parallel
from lucid.distributed.runtime import Group as Group
from lucid.distributed.runtime import init as init
from lucid.distributed.runtime import manual_seed as manual_seed
from lucid.distributed.runtime import new_group as new_group
from lucid.distributed.runtime import rank as rank
from lucid.distributed.runtime import world_size as world_size
from lucid.distributed.sampler import DistributedSampler as DistributedSampler


