"""A controller whose stubs change while it runs; started by double.py.

It prints its address, then reads lines of JSON, `{"stubs": FILE or null, "journal": true or false}`, and prints "ready"
when each is in effect. One process runs all scripts: two processes differ by more than a script costs.
"""

from __future__ import annotations

import json
import sys

from mockraft import Controller, SyncController


def put(controller: SyncController, stubs: str | None, *, journal: bool) -> None:
    """Replace the stubs, and enable or disable the journals."""

    def switch_journals() -> None:
        for each in controller.journals.values():
            each.enabled = journal

    controller.reset()
    controller.call(switch_journals)
    if stubs is not None:
        controller.load_stubs(stubs)


def main() -> None:
    with Controller.sync(assert_all_used=False) as controller:
        print(controller.bootstrap, flush=True)
        for line in sys.stdin:
            put(controller, **json.loads(line))
            print("ready", flush=True)


if __name__ == "__main__":
    main()
