"""Modules, optimizers, distributions and functions through pickle, cloudpickle and joblib."""

import copy
import inspect
import multiprocessing
import pickle
import subprocess
import sys

import cloudpickle
import joblib
import numpy as np
import pytest

import lucid
from lucid import distributions as D
from lucid import func, nn, optim
from lucid.tape.tiering import Tiering


def by_pickle(x):
    return pickle.loads(pickle.dumps(x))


def by_cloudpickle(x):
    return pickle.loads(cloudpickle.dumps(x))


WAYS = [by_pickle, by_cloudpickle, copy.deepcopy]


@lucid.jit
def doubled(x):
    return 2.0 * x


@func.custom_jvp
def steep(x):
    return lucid.sin(x)


@steep.defjvp
def steep_rule(primals, tangents):
    return steep(*primals), 5.0 * tangents[0]


class Scaler:
    def __init__(self, factor):
        self.factor = factor

    @lucid.jit
    def scale(self, x):
        return x * self.factor


def network():
    lucid.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 1))


def train(model, optimizer, steps):
    x = lucid.linspace(-1.0, 1.0, 15).reshape(5, 3)
    for _ in range(steps):
        optimizer.zero_grad()
        (model(x) ** 2).mean().backward()
        optimizer.step()
    return {name: x.tolist() for name, x in model.state_dict().items()}


@pytest.mark.parametrize("through", WAYS)
@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Adafactor"])
def test_training_continues_where_it_was(through, name, monkeypatch):
    monkeypatch.setattr(Tiering, "enabled", False)  # code that becomes native rounds differently
    model = network()
    options = {"momentum": 0.9} if name == "SGD" else {}
    optimizer = getattr(optim, name)(model.parameters(), lr=0.1, **options)
    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=1)
    train(model, optimizer, 2)
    scheduler.step()
    model2, optimizer2, scheduler2 = through((model, optimizer, scheduler))
    assert (
        scheduler2.optimizer is optimizer2
        and optimizer2.param_groups[0]["lr"] == optimizer.param_groups[0]["lr"]
    )
    before = copy.deepcopy(model.state_dict())
    assert train(model2, optimizer2, 3) != {k: x.tolist() for k, x in before.items()}
    assert {k: x.tolist() for k, x in model.state_dict().items()} == {
        k: x.tolist() for k, x in before.items()
    }
    assert train(model, optimizer, 3) == train(*through((model2, optimizer2)), 0)


def layer_classes():
    found = (getattr(nn, name) for name in dir(nn))
    return [cls for cls in found if inspect.isclass(cls) and issubclass(cls, nn.Module)]


def test_every_layer_is_pickled_and_copied():
    made = 0
    for cls in layer_classes():
        for args in ((), (4,), (4, 4), (4, 2), (4, 4, 4), (1, 1, 1, 1), (4, 1, 2), (9, 9, [3])):
            try:
                layer = cls(*args)
            except (lucid.errors.LucidError, TypeError, AttributeError):
                continue
            for through in (by_pickle, copy.deepcopy):
                again = through(layer)
                assert str(again) == str(layer)
                theirs, ours = again.state_dict(), layer.state_dict()
                assert theirs.keys() == ours.keys()
            made += 1
            break
    assert made > 140


def test_hooks_of_modules_arrive_and_make_room_for_others():
    layer = nn.Linear(2, 2)
    layer.register_forward_hook(count_call)
    again = by_pickle(layer)
    numbers = [*again._hooks.by_kind["after"]]
    handles = [again.register_forward_hook(count_call) for _ in range(3)]
    assert len({*numbers, *[h.number for h in handles]}) == 4
    CALLS.clear()
    again(lucid.ones(1, 2))
    assert len(CALLS) == 4


CALLS = []


def count_call(module, args, output):
    CALLS.append(module)


ONE, MATRIX = lucid.tensor([0.5, 1.5]), lucid.tensor([[2.0, 0.5], [0.5, 1.0]])
DISTRIBUTIONS = [
    D.Normal(ONE, ONE),
    D.Gamma(ONE, ONE),
    D.Beta(ONE, ONE),
    D.Bernoulli(logits=ONE),
    D.Categorical(probs=ONE),
    D.Poisson(ONE),
    D.StudentT(ONE),
    D.VonMises(ONE, ONE),
    D.MultivariateNormal(ONE, covariance_matrix=MATRIX),
    D.LowRankMultivariateNormal(ONE, MATRIX, ONE),
    D.Wishart(3.0, covariance_matrix=MATRIX),
    D.LKJCholesky(3),
    D.Independent(D.Laplace(ONE, ONE), 1),
    D.MixtureSameFamily(D.Categorical(ONE), D.Normal(ONE, ONE)),
    D.TransformedDistribution(D.Normal(ONE, ONE), [D.SigmoidTransform(), D.AffineTransform(1, 2)]),
    D.RelaxedBernoulli(lucid.tensor(0.7), logits=ONE),
]


@pytest.mark.parametrize("d", DISTRIBUTIONS, ids=lambda d: type(d).__name__)
def test_distributions_arrive(d):
    value = d.sample((3,))
    expected = d.log_prob(value).tolist()
    for through in WAYS:
        again = through(d)
        assert again.log_prob(value).tolist() == expected
        lucid.manual_seed(1)
        ours = d.sample().tolist()
        lucid.manual_seed(1)
        assert again.sample().tolist() == ours


def test_a_decorated_function_arrives_as_the_one_that_is_there():
    assert by_pickle(doubled) is doubled and copy.deepcopy(doubled) is doubled
    assert by_pickle(steep) is steep
    assert by_pickle(Scaler.scale) is Scaler.scale


def test_methods_and_options_of_jitted_functions_arrive():
    scaler = Scaler(3.0)
    method = by_pickle(scaler.scale)
    assert method(lucid.ones(2)).tolist() == scaler.scale(lucid.ones(2)).tolist() == [3.0, 3.0]
    power = by_cloudpickle(lucid.jit(lambda x, n: x**n, static_argnums=1))
    for n in (2, 3):
        assert power(lucid.tensor(2.0), n).item() == 2.0**n
    jitted = lucid.jit(network().eval())
    again = by_pickle(jitted)
    for n in (2, 3):
        assert again(lucid.ones(n, 3)).tolist() == jitted(lucid.ones(n, 3)).tolist()


def test_closures_and_transforms_arrive_by_cloudpickle():
    scale = lucid.tensor([1.0, 2.0])
    f = by_cloudpickle(lucid.jit(func.vmap(func.grad(lambda x: (scale * x**2).sum()))))
    for n in (3, 4):
        assert f(lucid.ones(n, 2)).tolist() == [[2.0, 4.0]] * n


def test_another_process_runs_functions_of_main_by_value(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import cloudpickle, sys, lucid\n"
        "@lucid.jit\n"
        "def power(x, n=2):\n"
        "    return x if n == 0 else x * power(x, n - 1)\n"
        "@lucid.func.custom_vjp\n"
        "def f(x): return x * 1.0\n"
        "f.defvjp(lambda x: (f(x), None), lambda r, ct: (7.0 * ct,))\n"
        "sys.stdout.buffer.write(cloudpickle.dumps((power.function, f)))\n"
    )
    text = subprocess.run([sys.executable, script], capture_output=True, check=True).stdout
    power, f = pickle.loads(text)
    assert power(lucid.tensor(2.0)).item() == 8.0
    assert func.grad(f)(lucid.tensor(1.0)).item() == 7.0


def test_pools_of_processes_take_tensors_and_jitted_functions():
    with multiprocessing.get_context("fork").Pool(1) as pool:
        found = pool.map(doubled, [lucid.ones(2), lucid.zeros(2)])
    assert [x.tolist() for x in found] == [[2.0, 2.0], [0.0, 0.0]]


@pytest.fixture
def workers_end():
    """joblib keeps its worker processes for the next call: end them here."""
    yield
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown(wait=True)


def test_joblib_maps_large_arrays_and_returns_tensors(tmp_path, workers_end):
    weight = lucid.ones(200, 1000)  # large enough to be mapped from a file by the workers
    call = joblib.delayed(scaled_sum)
    found = joblib.Parallel(n_jobs=2, max_nbytes=1000, mmap_mode="r")(
        call(weight, i) for i in (1.0, 2.0)
    )
    assert [x.item() for x in found] == [200_000.0, 400_000.0]
    joblib.dump({"w": weight}, tmp_path / "w.joblib")
    assert joblib.load(tmp_path / "w.joblib")["w"].shape == (200, 1000)
    memory = joblib.Memory(tmp_path, verbose=0)
    cached = memory.cache(total)
    assert cached(weight).item() == cached(weight).item() == 200_000.0
    assert cached(weight + 1.0).item() == 400_000.0


def scaled_sum(weight, factor):
    return weight.mul_(factor).sum()


def total(weight):
    return weight.sum()


def test_files_are_still_read_without_pickles(tmp_path):
    path = tmp_path / "model.pkl"
    path.write_bytes(pickle.dumps({"w": np.ones(3), "t": lucid.ones(3)}))
    with pytest.raises(lucid.errors.LucidError, match="a pickle, which can run arbitrary code"):
        lucid.load(path)
