"""Train a small network; rank 0 prints every loss to the bit: training.py <how> ..."""

from __future__ import annotations

import sys

import numpy as np

import lucid
import lucid.distributed as dist
from lucid import nn

rng = np.random.default_rng(3)
X, Y = rng.normal(size=(37, 5)), rng.normal(size=(37, 2))
lucid.set_default_dtype("float64")
R, N = dist.rank(), dist.world_size()


def say(how, loss) -> None:
    if R == 0:
        print(f"loss {how} {float(loss).hex()}\n", end="", flush=True)  # one write: ranks mix


def batches(size: int = 16, epochs: int = 3, drop_last: bool = False):
    sampler = dist.DistributedSampler(X, seed=1, batch_size=size, drop_last=drop_last)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for part in sampler:
            yield lucid.tensor(X[part]), lucid.tensor(Y[part])


def network():
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2))


def train(how: str) -> None:
    dist.manual_seed(5, same=True)
    if how in ("module", "module-jit"):
        model = dist.DataParallel(network(), bucket_cap_mb=0.0005)
        optimizer = lucid.optim.Adam(model.parameters(), lr=0.05)

        def step(x, y):
            optimizer.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            return model.average(loss)

        step = lucid.jit(step) if how == "module-jit" else step
        for x, y in batches():
            say(how, step(x, y))
    elif how in ("functional", "functional-jit", "deterministic"):
        params = {k: v.detach() for k, v in network().named_parameters()}
        net = network()

        def loss(params, x, y):
            return ((lucid.func.functional_call(net, params, x) - y) ** 2).mean()

        shards = 4 if how == "deterministic" else None
        step = dist.data_parallel(
            lucid.func.value_and_grad(loss),
            batch_argnums=(1, 2),
            shards=shards,
            bucket_cap_mb=0.0005,
        )
        step = step if how == "functional" else lucid.jit(step)
        for x, y in batches(drop_last=shards is not None):
            value, grads = step(params, x, y)
            params = {k: p - 0.1 * grads[k] for k, p in params.items()}
            say(how, value)
    elif how == "no_sync":
        model = dist.DataParallel(network())
        for x, y in batches(16, 1, drop_last=True):
            for p in model.parameters():
                p.grad = None
            half = len(x) // 2
            with model.no_sync():
                ((model(x[:half]) - y[:half]) ** 2).mean().backward()
            local = [p.grad.numpy().copy() for p in model.parameters()]
            ((model(x[half:]) - y[half:]) ** 2).mean().backward()
            say(how, sum([float((p.grad**2).sum()) for p in model.parameters()]))
            if N > 1:  # the first half was not averaged
                others = dist.all_gather(lucid.tensor(local[0]))
                assert not np.allclose(np.asarray(others[0]), np.asarray(others[1]))
    elif how == "buffers":
        model = dist.DataParallel(nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4)))
        for x, _ in batches(16, 1, drop_last=True):
            model(x)
        model(lucid.tensor(X[:4]))
        stats = np.asarray(dist.all_gather(model.module[1].running_mean))
        assert (stats == stats[0]).all()  # those of rank 0, and then the same examples
        dist.manual_seed(9)
        drawn = np.asarray(dist.all_gather(lucid.rand(3)))
        assert N == 1 or not np.allclose(drawn[0], drawn[1])  # rank-aware seeds
        dist.manual_seed(9, same=True)
        drawn = np.asarray(dist.all_gather(lucid.rand(3)))
        assert (drawn == drawn[0]).all()
        wrapped = dist.DataParallel(nn.Linear(3, 3))  # drawn from here on by all alike
        for p in wrapped.parameters():
            every = np.asarray(dist.all_gather(p.detach()))
            assert (every == every[0]).all()


def checkpoint(folder: str, action: str) -> None:
    dist.manual_seed(5, same=True)
    rows = np.arange(10.0).reshape(5, 2)
    cut = np.array_split(rows, N)[R]
    state = {"model": network().state_dict(), "table": lucid.tensor(cut), "epoch": 3, "z": 1 + 2j}
    if action == "save":
        dist.save_checkpoint(folder, state, sharded=["table"])
    found = dist.load_checkpoint(folder)
    assert found["epoch"] == 3 and found["z"] == 1 + 2j
    assert (found["table"].numpy() == cut).all(), (R, found["table"], cut)
    for name, x in state["model"].items():
        assert (found["model"][name].numpy() == x.numpy()).all()


if sys.argv[1] == "checkpoint":
    for action in sys.argv[3:]:
        checkpoint(sys.argv[2], action)
else:
    for how in sys.argv[1:]:
        train(how)
print(f"done {R}\n", end="", flush=True)
