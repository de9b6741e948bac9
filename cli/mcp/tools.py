"""The tools, each an operation of the admin API. Their signatures and docstrings are what an assistant reads."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import metadata
from typing import Any, Literal, TypeAlias
from urllib.parse import quote

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from mockraft.cli.admin.api import RefusedError, UnreachableError
from mockraft.cli.mcp.controllers import Controllers, NoControllerError
from mockraft.cli.mcp.written_test import test_source
from mockraft.testing.options import TEST_HEARTBEAT_INTERVAL_MS

Tree: TypeAlias = dict[str, Any]

LISTED_MAX = 200
"""Most requests or records in one answer: an assistant reads all of it."""

BROKERS_MAX = 100
"""Most simulated brokers of a controller that an assistant starts."""

INSTRUCTIONS = """mockraft is a Kafka KRaft controller for tests. To reproduce how brokers or clients behave when the
controller is slow, wrong or gone: start_controller (or use the one that runs), add_stub or add_fault, let the brokers
meet it, read requests (what was asked and answered) and records (the metadata log), then write_test. A stub answers in
place of the controller, such as {"match": {"api": "BrokerHeartbeat", "brokerId": 1}, "trigger": {"once": true},
"actions": [{"injectError": "NOT_CONTROLLER"}]}. Names of APIs, fields and errors are Kafka's; an error of a tool says
which part of the JSON is wrong."""


def make_server(controllers: Controllers) -> MCPServer:
    """Return the MCP server with all tools for this controller."""
    server = MCPServer("mockraft", version=metadata.version("mockraft"), instructions=INSTRUCTIONS, log_level="ERROR")
    tools = Tools(controllers)
    for does in READING:
        _add(server, getattr(tools, does), ToolAnnotations(read_only_hint=True))
    for does in ADDING:
        _add(server, getattr(tools, does), ToolAnnotations(read_only_hint=False, destructive_hint=False))
    for does in CHANGING:
        _add(server, getattr(tools, does), ToolAnnotations(read_only_hint=False, destructive_hint=True))
    return server


class Tools:
    """The tools as methods; every error of theirs is a ToolError with the reason in words."""

    def __init__(self, controllers: Controllers) -> None:
        self._controllers = controllers

    def health(self) -> Tree:
        """Release, metadata.version, active controller, numbers of brokers, requests, stubs and faults."""
        return self._get("/v1/health")

    def brokers(self) -> Tree:
        """The registered brokers: epoch, fenced or not, endpoints, log directories, rack."""
        return self._get("/v1/brokers")

    def topics(self) -> Tree:
        """The topics with the leader, ISR, replicas and directories of each partition."""
        return self._get("/v1/topics")

    def requests(
        self,
        after_id: int = 0,
        limit: int = 50,
        api: str | None = None,
        broker_id: int | None = None,
        bodies: bool = False,
    ) -> Tree:
        """Requests that the controller received, oldest first, with the answers. `next` is the next call's `after_id`.

        With `bodies` each has its request and response as JSON.
        """
        return self._get(
            "/v1/requests",
            afterId=after_id,
            limit=min(limit, LISTED_MAX),
            api=api,
            brokerId=broker_id,
            summary=str(not bodies).lower(),
        )

    def records(self, offset: int = 0, limit: int = 50) -> Tree:
        """Records of the metadata log from an offset, with type and fields."""
        return self._get("/v1/records", **{"from": offset}, limit=min(limit, LISTED_MAX))

    def stubs(self) -> Tree:
        """The stubs, and how often each matched and answered."""
        return self._get("/v1/stubs")

    def faults(self) -> Tree:
        """The faults, and how often each acted."""
        return self._get("/v1/faults")

    def fault_kinds(self) -> Tree:
        """All kinds of faults with their parameters, for add_fault."""
        return self._get("/v1/faults/kinds")

    def verify(self, match: Tree, at_least: int = 1, at_most: int | None = None, within_ms: int = 0) -> Tree:
        """Count requests that match, such as {"api": "BrokerRegistration", "brokerId": 1}, and wait for them if asked.

        If there are too few or too many, `report` has the nearest requests, condition by condition.
        """
        wanted: Tree = {"match": match, "atLeast": at_least, "withinMs": within_ms}
        if at_most is not None:
            wanted["atMost"] = at_most
        return _tree(self._controllers.to_read().send("POST", "/v1/requests/verify", wanted))

    def write_test(self, name: str, brokers: list[int], expected: list[Tree]) -> str:
        """Return the source of a pytest test with the present stubs and faults; save it as test_NAME.py and run pytest.

        It starts simulated brokers with these ids, and waits for the expected requests, each such as
        {"api": "BrokerRegistration", "brokerId": 1, "atLeast": 2}.
        """
        return test_source(name, brokers, self.stubs()["stubs"], self.faults()["faults"], expected)

    def start_controller(
        self,
        brokers: int = 0,
        controllers: int = 1,
        release: str | None = None,
        virtual_clock: bool = False,
        twin_of: str | None = None,
        twin_at: str | None = None,
    ) -> Tree:
        """Start a controller of your own, in place of the former one, with so many simulated brokers.

        Brokers and clients connect to `bootstrap`; `admin` is its HTTP API and live page. `release` is a Kafka release
        from 3.7 to 4.4. With `virtual_clock` only advance_clock moves its time. `twin_of` is a real controller's data
        directory, a snapshot of its log or a capture: the controller is a copy, as of `twin_at` (an offset or a time),
        to be read only; the other options are not for it.
        """
        if twin_of is not None:
            at = [] if twin_at is None else ["--at", twin_at]
            return dict(self._controllers.start("twin", ["--from", twin_of, *at]))
        if not 0 <= brokers <= BROKERS_MAX:
            raise ValueError(f"{brokers} brokers: at most {BROKERS_MAX}")
        options = ["--brokers", str(brokers), "--controllers", str(controllers)]
        options += ["--broker-heartbeat-interval-ms", str(TEST_HEARTBEAT_INTERVAL_MS)]
        options += ["--release", release] if release is not None else []
        options += ["--virtual-clock"] if virtual_clock else []
        return dict(self._controllers.start("serve", options))

    def stop_controller(self) -> str:
        """Stop the controller that start_controller started."""
        self._controllers.stop()
        return "stopped"

    def add_stub(self, stub: Tree) -> Tree:
        """Add a stub: which requests get another answer than the controller's, and when."""
        return self._change("POST", "/v1/stubs", stub)

    def remove_stub(self, stub_id: str) -> str:
        """Remove a stub by its id."""
        self._change("DELETE", f"/v1/stubs/{quote(stub_id, safe='')}")
        return "removed"

    def add_fault(self, fault: Tree) -> Tree:
        """Add a fault, such as {"kind": "latency", "params": {"latencyMs": 500}, "match": {"brokerId": 1}}."""
        return self._change("POST", "/v1/faults", fault)

    def remove_fault(self, fault_id: str) -> str:
        """Remove a fault by its id."""
        self._change("DELETE", f"/v1/faults/{quote(fault_id, safe='')}")
        return "removed"

    def change_broker(
        self, broker_id: int, command: Literal["fence", "unfence", "expire-session", "unregister"]
    ) -> Tree:
        """Write the records that fence, unfence or unregister a broker, or let its session expire."""
        return self._change("POST", f"/v1/brokers/{broker_id}/{command}")

    def advance_clock(self, ms: int) -> Tree:
        """Move a virtual clock; timeouts in between happen."""
        return self._change("POST", "/v1/clock/advance", {"ms": ms})

    def reset(self) -> str:
        """Remove all stubs and faults, and forget the requests."""
        self._change("POST", "/v1/reset")
        return "reset"

    def _get(self, path: str, **query: object) -> Tree:
        return _tree(self._controllers.to_read().get(path, **query))

    def _change(self, method: str, path: str, body: Tree | None = None) -> Tree:
        return _tree(self._controllers.to_change().send(method, path, body))


def _tree(answered: Any) -> Tree:
    """Return the JSON object of an answer; an empty answer is an empty object."""
    return answered or {}


READING = (
    "health",
    "brokers",
    "topics",
    "requests",
    "records",
    "stubs",
    "faults",
    "fault_kinds",
    "verify",
    "write_test",
)
ADDING = ("add_stub", "add_fault")
CHANGING = (
    "start_controller",
    "stop_controller",
    "remove_stub",
    "remove_fault",
    "change_broker",
    "advance_clock",
    "reset",
)


def _add(server: MCPServer, does: Callable[..., Any], annotations: ToolAnnotations) -> None:
    @wraps(does)
    def tool(*args: Any, **given: Any) -> Any:
        try:
            return does(*args, **given)
        except (RefusedError, UnreachableError, NoControllerError, ValueError) as error:
            raise ToolError(str(error)) from None

    server.add_tool(tool, annotations=annotations)
