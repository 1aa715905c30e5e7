"""Programs on many processes: differentiable collectives over MPI, data parallelism, bulk maps.

    runtime        the world: ranks, groups, seeds, and how it starts and ends
    collectives    the primitives: all_reduce, all_gather, ..., send and recv, with every rule
    functions      the public functions that bind them
    execution      how one collective runs: buffers, requests, waiting
    lowering       the same as an instruction of a compiled plan
    board          where each rank says what it is doing, and how failures are found
    parallel       data parallel training: DataParallel, data_parallel
    sampler        which examples a rank gets
    checkpoint     checkpoints of many ranks that load on any number of them
    bulk           pmap over a Dask client or local processes

`import lucid` does not import this package; `import lucid.distributed` does not import MPI, which
`init()` or the first collective starts (docs/distributed.md).
"""

from lucid.public.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
