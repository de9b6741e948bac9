"""No leak, and no access outside of what is allocated."""

import contextlib
import gc
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import weakref
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import ModuleType

import pytest
from mockraft.wire import shapes
from mockraft.wire.errors import WireError
from mockraft.wire.message import Struct, field_names
from mockraft.wire.messages import broker_heartbeat_request
from mockraft.wire.messages.broker_heartbeat_response import BrokerHeartbeatResponse

from ..budgets import soak
from ..wire.test_hostile_bytes import mutant
from .test_paths_are_equal import WRONG_VALUES, messages

pytestmark = pytest.mark.accelerated

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "speed" / "mockraft_speed"
# A leak of one object in each round would be several hundred blocks: one for each message.
ROUNDS = 5
BLOCKS_MAX = 100


def use(rng: Random) -> None:
    """Read and write every message in C, from valid bytes, from mutated ones, and with wrong values."""
    for cls, version, message in messages(41):
        data = message.write(version)
        for body in (data, mutant(data, rng)):
            try:
                cls.read(body, version)
                cls.read_from(body, version, 0)
            except WireError:
                pass
        name = rng.choice((*field_names(type(message)), "unknown_tagged_fields"))
        setattr(message, name, rng.choice(WRONG_VALUES))
        with contextlib.suppress(WireError):
            message.write(version)


def read_classes(cls: type[Struct]) -> Iterator[type[Struct]]:
    for each in cls.__subclasses__():
        if each.__module__.startswith("mockraft.wire.") and each.__qualname__.startswith("_"):
            yield each
        yield from read_classes(each)


def test_rounds_allocate_nothing_that_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    use(Random(42))  # plans and caches
    # A struct may get a function for a shape at any round, of some 30 blocks; their number is bounded.
    monkeypatch.setattr(shapes, "SHAPES_MAX", 0)
    for cls in read_classes(Struct):
        # More than the C code keeps of released instances.
        [cls() for _ in range(200)]
    blocks = []
    for _ in range(ROUNDS):
        use(Random(42))
        gc.collect()
        blocks.append(sys.getallocatedblocks())
    assert blocks[-1] - blocks[1] < BLOCKS_MAX, blocks


def test_shared_objects_keep_their_reference_counts() -> None:
    cls, _version, message = next(found for found in messages(43) if found[0].__name__ == "MetadataResponse")
    message.topics = []
    message.throttle_time_ms = 1000
    data = message.write(12)
    decoded = type(cls.read(data, 12))
    shared = (decoded, (), True, None, cls.read(data, 12).throttle_time_ms)
    before = [sys.getrefcount(value) for value in shared]
    for _ in range(10_000):
        cls.read(data, 12)
        cls.read(data, 12).write(12)
        with pytest.raises(WireError):
            cls.read(data[:-1], 12)
    after = [sys.getrefcount(value) for value in shared]
    assert max(abs(a - b) for a, b in zip(after, before, strict=True)) < 1000


def test_deep_nesting_is_released_without_deep_recursion() -> None:
    data = BrokerHeartbeatResponse().write(1)
    inner: object = ()
    for _ in range(200_000):
        message = BrokerHeartbeatResponse.read(data, 1)
        message.unknown_tagged_fields = inner  # type: ignore[assignment]
        inner = message
    blocks = sys.getallocatedblocks()
    del message, inner
    assert blocks - sys.getallocatedblocks() > 190_000


def test_subclasses_of_what_readers_create_are_released() -> None:
    decoded = type(BrokerHeartbeatResponse.read(BrokerHeartbeatResponse().write(1), 1))
    released = []

    class Own(decoded):  # type: ignore[misc, valid-type]
        def __del__(self) -> None:
            released.append((self.error_code, self.name))

    before = sys.getrefcount(decoded), sys.getrefcount(Own)
    for number in range(3):
        own = Own()
        own.error_code, own.name, own.itself = number, str(number), own
    del own
    gc.collect()
    assert released == [(0, "0"), (1, "1"), (2, "2")]
    assert (sys.getrefcount(decoded), sys.getrefcount(Own)) == before


def test_a_finalizer_sees_its_message(monkeypatch: pytest.MonkeyPatch) -> None:
    data, saved = BrokerHeartbeatResponse(error_code=7).write(1), []
    for _ in range(2):  # the second instance is in the memory of the first
        with monkeypatch.context() as patch:
            patch.setattr(BrokerHeartbeatResponse, "__del__", lambda self: saved.append(self), raising=False)
            BrokerHeartbeatResponse.read(data, 1)
        assert [message.error_code for message in saved] == [7]
        saved.clear()


def test_a_class_that_nobody_uses_is_collected() -> None:
    path = Path(broker_heartbeat_request.__file__)
    kept = []
    for _ in range(3):
        module = ModuleType("mockraft.overlays.forgotten")
        exec(compile(path.read_text(), str(path), "exec"), vars(module))
        cls = module.BrokerHeartbeatRequest
        assert cls.read(cls(broker_id=1).write(1), 1).broker_id == 1
        kept.append(weakref.ref(cls))
    del module, cls
    gc.collect()
    assert [found() for found in kept] == [None] * 3


@soak
def test_address_sanitizer_finds_nothing(tmp_path: Path) -> None:
    compiler = sysconfig.get_config_var("CC").split()[0]
    assert shutil.which(compiler), f"{compiler} is needed"
    package = tmp_path / "mockraft_speed"
    shutil.copytree(SOURCES, package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    include = sysconfig.get_path("include")
    flags = ["-shared", "-fPIC", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover", f"-I{include}"]
    for extension in tomllib.loads((SOURCES.parent / "pyproject.toml").read_text())["tool"]["setuptools"][
        "ext-modules"
    ]:
        library = extension["name"].replace(".", "/") + sysconfig.get_config_var("EXT_SUFFIX")
        subprocess.run([compiler, *flags, *extension["sources"], "-o", library], check=True, cwd=tmp_path)
    runtime = subprocess.run([compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    environment = {
        **os.environ,
        "LD_PRELOAD": runtime.stdout.strip(),
        "ASAN_OPTIONS": "detect_leaks=0",  # the interpreter frees little at its end
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(tmp_path),
        "MOCKRAFT_CODEC": "speed",
    }
    tests = (
        "tests/speed/test_paths_are_equal.py",
        "tests/speed/test_captures_are_equal.py",
        "tests/tools/fuzzing/test_corpus.py",
    )
    # Processes that a test starts do without the sanitizer.
    command = [sys.executable, "-m", "pytest", "-q", "-k", "not both_paths"]
    ended = subprocess.run([*command, *tests], capture_output=True, text=True, env=environment, cwd=ROOT)
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]
