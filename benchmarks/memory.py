"""Peak memory: how much a training step of ResNet-18 adds to what the process holds before it.

    python benchmarks/memory.py                    # Lucid, in this environment
    python benchmarks/memory.py --torch PYTHON     # and PyTorch, by an interpreter that has it

Every figure is from a process of its own: the growth of its peak (VmHWM in /proc/self/status) by
the first step, in which everything is allocated and compiled, and by five more. The model, the
optimizer and the batch exist before. The network is torchvision's ResNet-18, written for both.
The disk cache is empty. LLVM is loaded when the first program is compiled, whatever its size; a
program of one operation does that before, and its growth is the column "compiler", not in the rest.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import subprocess
import sys
import tempfile
from typing import Any

import numpy as np

LAYERS = ((64, 1), (128, 2), (256, 2), (512, 2))  # channels and stride, two blocks each
KINDS = {"lucid": ("jit", "eager"), "torch": ("eager",)}


def resnet18(nn: Any, classes: int = 1000) -> Any:
    """ResNet-18 as a Module of this library: 11,689,512 parameters for 1,000 classes."""
    F = nn.functional

    class Block(nn.Module):
        def __init__(self, inner: int, outer: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(inner, outer, 3, stride=stride, padding=1, bias=False)
            self.bn1 = nn.BatchNorm2d(outer)
            self.conv2 = nn.Conv2d(outer, outer, 3, padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(outer)
            self.downsample = None
            if stride != 1 or inner != outer:
                self.downsample = nn.Sequential(
                    nn.Conv2d(inner, outer, 1, stride=stride, bias=False), nn.BatchNorm2d(outer)
                )

        def forward(self, x: Any) -> Any:
            y = F.relu(self.bn1(self.conv1(x)))
            y = self.bn2(self.conv2(y))
            return F.relu(y + (x if self.downsample is None else self.downsample(x)))

    class ResNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
            self.bn1 = nn.BatchNorm2d(64)
            self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
            blocks, inner = [], 64
            for outer, stride in LAYERS:
                blocks += [Block(inner, outer, stride), Block(outer, outer, 1)]
                inner = outer
            self.blocks = nn.Sequential(*blocks)
            self.fc = nn.Linear(512, classes)

        def forward(self, x: Any) -> Any:
            x = self.maxpool(F.relu(self.bn1(self.conv1(x))))
            return self.fc(self.blocks(x).mean((2, 3)))

    return ResNet()


def status(name: str) -> int:
    """Bytes of a line of /proc/self/status, such as VmHWM or VmRSS."""
    with open("/proc/self/status") as lines:
        found = next(line for line in lines if line.startswith(f"{name}:"))
    return int(found.split()[1]) * 1024


def measure(library: str, kind: str, optimizer: str, batch: int, size: int) -> dict[str, float]:
    """Run the steps and return the growth of the peak in MB."""
    lib = importlib.import_module(library)
    (lib.set_num_threads if library == "torch" else lambda n: None)(2)
    found = {}
    if library == "lucid":
        before = status("VmRSS")
        lib.jit(lambda x: x + 1.0)(lib.ones(10)).numpy()
        found["compiler"] = (status("VmRSS") - before) / 1e6
    model = resnet18(lib.nn)
    params = list(model.parameters())
    made = {
        "sgd": lambda: lib.optim.SGD(params, lr=0.01),
        "momentum": lambda: lib.optim.SGD(params, lr=0.01, momentum=0.9),
        "adam": lambda: lib.optim.Adam(params, lr=0.001),
    }[optimizer]()
    rng = np.random.default_rng(0)
    images = lib.tensor(rng.normal(size=(batch, 3, size, size)).astype(np.float32))
    labels = lib.tensor(rng.integers(0, 1000, batch))

    def once(images: Any, labels: Any) -> Any:
        made.zero_grad()
        loss = lib.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        made.step()
        return loss

    step = lib.jit(once) if kind == "jit" else once
    gc.collect()
    before = status("VmRSS")
    loss = step(images, labels)
    found["first"] = (status("VmHWM") - before) / 1e6
    for _ in range(5):
        loss = step(images, labels)
    found["later"] = (status("VmHWM") - before) / 1e6
    found["kept"] = (status("VmRSS") - before) / 1e6
    found["loss"] = float(loss.item())
    if kind == "jit":
        found["arena"] = lib.memory(once, images, labels).arena / 1e6
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--torch", help="a Python that has PyTorch")
    parser.add_argument("--optimizer", default="sgd", choices=("sgd", "momentum", "adam"))
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        library, kind = given.worker.split()
        print(json.dumps(measure(library, kind, given.optimizer, given.batch, given.size)))
        return
    pythons = {"lucid": sys.executable, **({"torch": given.torch} if given.torch else {})}
    options = ["--optimizer", given.optimizer, "--batch", str(given.batch)]
    options += ["--size", str(given.size)]
    print(f"ResNet-18, {given.optimizer}, {given.batch} x 3 x {given.size} x {given.size}; MB")
    print(f"{'':16}{'first step':>12}{'six steps':>12}{'kept':>12}{'compiler':>12}{'arena':>12}")
    for library, python in pythons.items():
        for kind in KINDS[library]:
            command = [python, __file__, *options, "--worker", f"{library} {kind}"]
            with tempfile.TemporaryDirectory() as cache:
                env = {**os.environ, "LUCID_CACHE_DIR": cache}
                done = subprocess.run(command, check=True, capture_output=True, text=True, env=env)
            found = json.loads(done.stdout)
            shown = [found.get(name) for name in ("first", "later", "kept", "compiler", "arena")]
            row = "".join("" if x is None else f"{x:12.0f}" for x in shown)
            print(f"{library} {kind:{15 - len(library)}}{row}   loss {found['loss']:.4f}")


if __name__ == "__main__":
    main()
