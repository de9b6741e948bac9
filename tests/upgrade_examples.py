"""The programs of examples/upgrade, which are no package."""

import importlib.util
from pathlib import Path
from types import ModuleType

EXAMPLES = Path(__file__).parents[1] / "examples" / "upgrade"


def example(name: str) -> ModuleType:
    """Return the module of one of the programs."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


write_cluster = example("write_cluster").write_cluster
"""Write the data directory of a controller with so many brokers and partitions."""
