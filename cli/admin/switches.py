"""Commands shared by stubs and faults: switch one on or off, remove one or all."""

from __future__ import annotations

from typing import Annotated

import typer
from mockraft.cli.admin.remote import Remote, remote

Id = Annotated[str, typer.Argument(metavar="ID", help="Its id, as the list says it.")]
OneId = Annotated[str | None, typer.Argument(metavar="ID", help="Its id, as the list says it.")]
All = Annotated[bool, typer.Option("--all", help="All of them; of faults the plan too.")]


def switches(commands: typer.Typer, what: str) -> None:
    """Add `on`, `off` and `remove` to the commands about stubs or faults: `what` is "stub" or "fault"."""
    path = f"/v1/{what}s"

    def switched(to: Remote, name: str, enabled: bool) -> None:
        to.show(to.api.send("PATCH", f"{path}/{name}", {"enabled": enabled}), f"{name} is {'on' if enabled else 'off'}")

    def on(to: Remote, name: Id) -> None:
        """Switch it on."""
        switched(to, name, True)

    def off(to: Remote, name: Id) -> None:
        """Switch it off; its counts stay."""
        switched(to, name, False)

    def remove(to: Remote, name: OneId = None, all_: All = False) -> None:
        """Switch it off and forget it, or all."""
        if (name is None) != all_:
            raise typer.BadParameter("say which: an ID or --all")
        to.api.send("DELETE", path if name is None else f"{path}/{name}")
        to.show(None, f"all {what}s are gone" if name is None else f"{name} is gone")

    remote(commands, "on", f"Switch a {what} on.")(on)
    remote(commands, "off", f"Switch a {what} off; its counts stay.")(off)
    remote(commands, "remove", f"Take a {what} away, or all.")(remove)
