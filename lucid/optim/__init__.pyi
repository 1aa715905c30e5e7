# Written by `python -m lucid.public.build`.

import builtins as _b
import collections.abc as _abc
import typing as _t

import numpy as _np

from lucid.optim import functional as functional
from lucid.optim import lr_scheduler as lr_scheduler
from lucid.optim import swa_utils as swa_utils
from lucid.optim.adam import Adam as Adam
from lucid.optim.adam import AdamW as AdamW
from lucid.optim.adam import Adamax as Adamax
from lucid.optim.adam import NAdam as NAdam
from lucid.optim.adam import RAdam as RAdam
from lucid.optim.adaptive import Adadelta as Adadelta
from lucid.optim.adaptive import Adafactor as Adafactor
from lucid.optim.adaptive import Adagrad as Adagrad
from lucid.optim.adaptive import RMSprop as RMSprop
from lucid.optim.lbfgs import LBFGS as LBFGS
from lucid.optim.optimizer import Optimizer as Optimizer
from lucid.optim.sgd import ASGD as ASGD
from lucid.optim.sgd import SGD as SGD
from lucid.optim.signs import Lion as Lion
from lucid.optim.signs import Muon as Muon
from lucid.optim.signs import Rprop as Rprop


