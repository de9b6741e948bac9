"""Every module can be imported on every Python that is supported."""

import configparser
import importlib
import pkgutil
import re
from pathlib import Path

import mockraft
import mockraft.server

NOT_IN_TESTS = ("mockraft.spark_replay.spark", "mockraft.__main__", "mockraft.codegen.__main__")
"""Modules that need PySpark, and modules that run a program when they are imported."""


def test_every_module_can_be_imported() -> None:
    names = [module.name for module in pkgutil.walk_packages(mockraft.__path__, "mockraft.", onerror=print)]
    chosen = [name for name in names if not name.startswith(NOT_IN_TESTS)]
    assert len(chosen) > 500
    for name in chosen:
        importlib.import_module(name)


def test_every_module_of_the_server_is_in_a_layer() -> None:
    contracts = configparser.ConfigParser()
    assert contracts.read(Path(__file__).parents[1] / ".importlinter")
    layers = contracts["importlinter:contract:server-layers"]["layers"]
    named = set(re.findall(r"mockraft\.server\.(\w+)", layers))
    assert {module.name for module in pkgutil.iter_modules(mockraft.server.__path__)} == named
