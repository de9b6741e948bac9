"""Commands shared by stubs and faults: switch one on or off, remove one or all."""

from __future__ import annotations

from typing import Annotated

from mockraft.cli.admin.remote import Remote, RemoteCommands, known
from mockraft.kafka_api.options import Option, OptionError

All = Annotated[bool, Option(flags=("--all",), help="All of them; of faults the plan too.")]


def switches(commands: RemoteCommands, what: str) -> None:
    """Add `on`, `off` and `remove` to the commands about stubs or faults: `what` is "stub" or "fault"."""
    path = f"/v1/{what}s"

    def switched(to: Remote, name: str, enabled: bool) -> None:
        to.show(to.api.send("PATCH", f"{path}/{name}", {"enabled": enabled}), f"{name} is {'on' if enabled else 'off'}")

    def on(to: Remote, name: str) -> None:
        """Switch it on."""
        switched(to, name, True)

    def off(to: Remote, name: str) -> None:
        """Switch it off; its counts stay."""
        switched(to, name, False)

    def remove(to: Remote, name: str | None = None, all_: All = False) -> None:
        """Switch it off and forget it, or all."""
        if (name is None) != all_:
            raise OptionError("say which: an ID or --all")
        to.api.send("DELETE", path if name is None else f"{path}/{name}")
        to.show(None, f"all {what}s are gone" if name is None else f"{name} is gone")

    for do in (on, off):
        do.__annotations__["name"] = Annotated[str, _id_of(what)]
    remove.__annotations__["name"] = Annotated[str | None, _id_of(what)]
    commands.add("on")(on)
    commands.add("off")(off)
    commands.add("remove")(remove)


def _id_of(what: str) -> Option:
    found = known(f"/v1/{what}s", f"{what}s")
    return Option(is_argument=True, metavar="ID", help="Its id, as the list says it.", completes=found)
