"""lucid.compat.torch: PyTorch's manners and boilerplate, for programs that change imports alone."""

import subprocess
import sys

import lucid.compat.torch.backends.cudnn as cudnn
import lucid.compat.torch.nn.functional as F
import lucid.compat.torch.nn.parallel
import numpy as np
import pytest
from lucid.compat.torch.nn.parameter import Parameter
from lucid.compat.torch.optim.lr_scheduler import StepLR
from lucid.compat.torch.utils.data import DataLoader, TensorDataset
from lucid.compat.torch.utils.data.dataloader import DataLoader as SameLoader
from lucid.compat.torch.utils.tensorboard import SummaryWriter

import lucid
import lucid.compat.torch as torch
from lucid.compat.torch import nn, optim
from lucid.compat.torch.autograd import Variable
from lucid.errors import ArgumentError, FileFormatError, GraphError


def test_grad_returns_a_tuple():
    x, y = torch.ones(3, requires_grad=True), torch.ones(2, requires_grad=True)
    (g,) = torch.autograd.grad((x * x).sum(), x)
    assert g.tolist() == [2.0] * 3
    found = torch.autograd.grad((x * x).sum(), [x, y], materialize_grads=True)
    assert [v.tolist() for v in found] == [[2.0] * 3, [0.0] * 2]
    assert torch.autograd.grad((x * x).sum(), [x, y], allow_unused=True)[1] is None
    rows = torch.autograd.grad(x * x, x, torch.eye(3), is_grads_batched=True)[0]
    assert rows.tolist() == (2 * np.eye(3)).tolist()


def test_backward_of_several_elements_raises_in_files_that_import_the_namespace():
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(GraphError, match="only for scalar outputs"):
        (x * 2).backward()
    with pytest.raises(GraphError, match="only for scalar outputs"):
        torch.autograd.grad(x * 2, x)
    (x * 2).backward(torch.ones(3))
    (x[:1] * 2).backward()
    assert x.grad.tolist() == [4.0, 2.0, 2.0]
    program = (
        "import lucid, sys\n"
        "import lucid.compat.torch\n"
        "x = lucid.ones(3, requires_grad=True)\n"
        "del lucid.compat\n"
        "(x * 2).backward()\n"
        "print(x.grad.tolist())\n"
    )  # a file of Lucid's, beside one that is ported, keeps Lucid's rule
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert out.stdout == "[2.0, 2.0, 2.0]\n", out.stderr


def test_boilerplate_finds_what_it_mentions():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    assert device.type == "cpu" and device.index is None and repr(device) == "device(type='cpu')"
    assert torch.zeros(2, device=device).to(device).device == device
    assert torch.device("cuda", 1) == "cuda:1" and torch.device("cuda:1").index == 1
    torch.cuda.manual_seed_all(1)
    torch.backends.cudnn.deterministic = cudnn.benchmark = True
    assert not torch.accelerator.is_available() and torch.accelerator.current_accelerator() is None
    assert torch.cuda.device_count() == 0 and not torch.backends.mps.is_available()
    scaler = torch.cuda.amp.GradScaler()
    with torch.cuda.amp.autocast():
        loss = scaler.scale(torch.ones((), requires_grad=True) * 2)
    loss.backward()
    assert SameLoader is DataLoader and Parameter is nn.Parameter is lucid.nn.Parameter
    assert Variable(torch.ones(1), requires_grad=True).requires_grad
    assert nn.DataParallel(nn.Linear(2, 3))(torch.ones(1, 2)).shape == (1, 3)
    assert torch.nn.modules.rnn.LSTM is nn.LSTM and torch.nn.functional.relu is F.relu


def test_a_device_that_is_not_there_is_named_in_one_line():
    for request in (
        lambda: torch.zeros(2, device="cuda"),
        lambda: torch.zeros(2).to(torch.device("cuda")),
        lambda: torch.cuda.set_device(0),
    ):
        with pytest.raises(ArgumentError) as caught:
            request()
        assert "\n" not in str(caught.value) and "CPU" in str(caught.value)


def test_tensor_types_construct_and_check():
    assert torch.Tensor([1, 2]).dtype == torch.float32 and torch.Tensor(2, 3).shape == (2, 3)
    assert torch.LongTensor([1.0, 2.0]).dtype == torch.long
    assert isinstance(torch.ones(2), torch.Tensor) and isinstance(torch.ones(2), torch.FloatTensor)
    assert not isinstance(torch.ones(2), torch.LongTensor)
    assert isinstance(torch.arange(2), (torch.LongTensor, torch.IntTensor))
    assert isinstance(torch.float32, torch.dtype) and torch.Size((2, 3)).numel() == 6
    assert torch.ones(2).type(torch.LongTensor).dtype == torch.int64
    assert torch.ones(2).type() == "torch.FloatTensor" and torch.is_tensor(torch.ones(1))


class Net(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.hidden, self.activation = hidden, F.relu
        self.body = nn.Sequential(nn.Linear(3, hidden), nn.BatchNorm1d(hidden))
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.head(self.activation(self.body(x)))


def test_whole_modules_are_saved_without_pickles(tmp_path):
    net, path = Net(4), tmp_path / "net.pt"
    net(torch.ones(5, 3))
    net.eval()
    with open(path, "wb") as f:
        torch.save(net, f)
    again = torch.load(path, map_location="cpu", weights_only=False)
    assert type(again) is Net and again.hidden == 4 and not again.training
    x = torch.randn(5, 3)
    assert again(x).tolist() == net(x).tolist()
    assert [p.requires_grad for p in again.parameters()] == [True] * 6
    torch.save({"model": net.state_dict(), "data": np.arange(3), "step": 2}, path)
    found = torch.load(path)
    assert isinstance(found["data"], np.ndarray) and found["step"] == 2
    assert b"\x80\x04" not in path.read_bytes()[:2]


def test_files_name_only_what_is_allowed(tmp_path):
    path = tmp_path / "x.pt"
    lucid.save({"lucid.compat.torch": "global", "name": "os:system"}, path)
    with pytest.raises(FileFormatError, match="os.system.*add_safe_globals"):
        torch.load(path)
    lucid.save({"lucid.compat.torch": "module", "class": "builtins:dict", "state": {}}, path)
    with pytest.raises(FileFormatError, match="builtins.dict"):
        torch.load(path)
    with torch.serialization.safe_globals([np.median]):
        torch.save(len, path)
        with pytest.raises(FileFormatError, match=r"builtins\.len"):
            torch.load(path)


def test_a_training_program_runs(tmp_path):
    torch.manual_seed(0)
    x = torch.randn(64, 3)
    loader = DataLoader(TensorDataset(x, (x.sum(1) > 0).long()), batch_size=16, shuffle=True,
                        pin_memory=True)  # fmt: skip
    model = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 2)).to(torch.device("cpu"))
    optimizer = optim.AdamW(model.parameters(), lr=0.05)
    schedule = StepLR(optimizer, step_size=1, gamma=0.9)
    writer = SummaryWriter(str(tmp_path))
    for epoch in range(5):
        for data, target in loader:
            optimizer.zero_grad(set_to_none=True)
            loss = F.cross_entropy(model(data), target)
            loss.backward()
            optimizer.step()
        writer.add_scalar("loss", loss, epoch)
        schedule.step()
    writer.close()
    assert loss.item() < 0.4
    assert (tmp_path / "scalars.csv").read_text().count("\n") == 5


def test_lucid_itself_stays_clean():
    for name in ("cuda", "FloatTensor", "backends", "accelerator", "amp"):
        assert not hasattr(lucid, name)


def test_the_grad_of_a_result_warns_as_in_pytorch():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    with pytest.warns(UserWarning, match=r"retain_grad\(\)"):
        assert y.grad is None
    y.retain_grad()
    y.sum().backward()
    assert y.grad.tolist() == [1.0, 1.0] and x.grad.tolist() == [2.0, 2.0]


def test_the_windows_of_torch_signal():
    assert torch.signal.windows.hann(3).tolist() == [0.0, 1.0, 0.0]


def test_memory_formats_and_devices_are_accepted_where_they_change_nothing():
    x = torch.randn(2, 3, 4, 4)
    same = [
        x.clone(memory_format=torch.preserve_format),
        x.contiguous(memory_format=torch.channels_last),
        x.to(memory_format=torch.channels_last),
        x.to(torch.float32, memory_format=torch.contiguous_format),
        x.pin_memory(),
    ]
    assert all([torch.equal(y, x) for y in same])
    assert torch.zeros_like(x, memory_format=torch.preserve_format).shape == x.shape
    assert torch.rand_like(x, layout=torch.strided).shape == x.shape
    assert torch.zeros(2, pin_memory=True).tolist() == [0.0, 0.0]
    assert x.is_contiguous(memory_format=torch.contiguous_format)
    assert x.get_device() == -1 and not x.is_pinned()
    with pytest.raises(TypeError, match="memory"):
        torch.zeros(2, memory=3)


def test_a_generator_accepts_its_device_in_every_place_and_refuses_others():
    for g in (torch.Generator("cpu"), torch.Generator(torch.device("cpu")),
              torch.Generator(device="cpu")):  # fmt: skip
        first = torch.rand(2, generator=g.manual_seed(3))
        assert torch.equal(first, torch.rand(2, generator=torch.Generator().manual_seed(3)))
    with pytest.raises(ArgumentError, match="cuda"):
        torch.Generator(device="cuda")


def test_base_and_storage_offset_of_views():
    x = torch.arange(12.0).reshape(3, 4).clone()
    view = x[1:].t()[2:]
    assert view._base is x and view._is_view() and view.storage_offset() == 6
    assert x._base is None and not x._is_view() and x.storage_offset() == 0
    assert x.detach()._base is None and x[1].detach().storage_offset() == 4


def test_autocast_is_a_name_of_the_package():
    with torch.autocast("cpu", enabled=False):
        assert torch.ones(1).dtype == torch.float32
