"""A double in a process of its own, whose script changes while it runs; started by double.py.

Prints its address, then takes lines of JSON, `{"stubs": FILE or null, "journal": true or false}`, and answers each with
a line once that is in force. One process for all scripts: two of the same program differ by more than a script costs.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from mockraft import Controller, SyncController


def put(controller: SyncController, script: dict[str, Any]) -> None:
    """Have this script in force, and no other."""

    def switch_journals() -> None:
        for journal in controller.double.journals.values():
            journal.enabled = script["journal"]

    controller.reset()
    controller.call(switch_journals)
    if script["stubs"] is not None:
        controller.load_stubs(script["stubs"])


def main() -> None:
    with Controller.sync() as controller:
        print(controller.bootstrap, flush=True)
        for line in sys.stdin:
            put(controller, json.loads(line))
            print("ready", flush=True)


if __name__ == "__main__":
    main()
