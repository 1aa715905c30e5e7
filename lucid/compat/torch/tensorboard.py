"""torch.utils.tensorboard: a SummaryWriter whose scalars go to a CSV file."""

from __future__ import annotations

import os
import time
from typing import Any


class SummaryWriter:
    """Appends scalars to `log_dir/scalars.csv` as tag,step,value; everything else is ignored."""

    def __init__(self, log_dir: str | None = None, **options: Any) -> None:
        self.log_dir = log_dir or os.path.join("runs", time.strftime("%Y%m%d-%H%M%S"))
        os.makedirs(self.log_dir, exist_ok=True)
        self.path = os.path.join(self.log_dir, "scalars.csv")

    def add_scalar(self, tag: str, value: Any, global_step: Any = None, *_: Any, **__: Any) -> None:
        """Append one number."""
        number = value.item() if hasattr(value, "item") else float(value)
        with open(self.path, "a") as file:
            file.write(f"{tag},{'' if global_step is None else global_step},{number!r}\n")

    def add_scalars(self, tag: str, values: dict[str, Any], global_step: Any = None) -> None:
        """Append several numbers."""
        for name, value in values.items():
            self.add_scalar(f"{tag}/{name}", value, global_step)

    def _ignore(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing."""

    add_histogram = add_image = add_images = add_graph = add_text = add_hparams = _ignore
    flush = close = _ignore

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *_: Any) -> None:
        pass
