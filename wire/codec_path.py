"""The codec's path in use: pure Python, or the C code of the package mockraft-speed (see `wire.message`)."""

from __future__ import annotations

from mockraft.wire.message import accelerate

path = "pure" if accelerate is None else "speed"
