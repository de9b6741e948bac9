"""Every module can be imported on every Python that is supported."""

import importlib
import pkgutil

import mockraft

NOT_IN_TESTS = ("mockraft.spark_replay.spark", "mockraft.__main__", "mockraft.codegen.__main__")
"""Modules that need PySpark, and modules that run a program when they are imported."""


def test_every_module_can_be_imported() -> None:
    names = [module.name for module in pkgutil.walk_packages(mockraft.__path__, "mockraft.", onerror=print)]
    chosen = [name for name in names if not name.startswith(NOT_IN_TESTS)]
    assert len(chosen) > 500
    for name in chosen:
        importlib.import_module(name)
