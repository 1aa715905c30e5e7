# Written by `python -m lucid.public.build`.

import builtins as _b
import collections.abc as _abc
import typing as _t

import numpy as _np

from lucid.utils import checkpoint as checkpoint
from lucid.utils import data as data
from lucid.utils.progress_bar import Progress as Progress
from lucid.utils.progress_bar import progress as progress


