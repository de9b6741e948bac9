"""A scripted MCP client uses `mockraft mcp` as an assistant would."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mockraft import Controller, SyncController
from mockraft.cli.admin.api import AdminClient
from mockraft.cli.mcp.controllers import Controllers
from mockraft.cli.mcp.written_test import test_source as written
from mockraft.testing.options import ControllerOptions

from ...budgets import soak
from ...rows import each_row
from ..cli import invoke, one_line

CAPTURE = Path(__file__).parents[2] / "captures" / "controller-4.3.1.pcap"
HEARTBEATS = {"api": "BrokerHeartbeat", "brokerId": 1}
NOT_CONTROLLER = {"match": HEARTBEATS, "trigger": {"once": True}, "actions": [{"injectError": "NOT_CONTROLLER"}]}


def assistant(*options: str) -> Client:
    return Client(StdioServerParameters(command=sys.executable, args=["-m", "mockraft", "mcp", *options]))


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    answered = await client.call_tool(tool, arguments)
    assert not answered.is_error, answered.content
    found = answered.structured_content
    return found["result"] if found is not None and set(found) == {"result"} else found


async def refusal(client: Client, tool: str, **arguments: Any) -> str:
    answered = await client.call_tool(tool, arguments)
    assert answered.is_error
    return str(answered.content[0].text)  # type: ignore[union-attr]


async def test_assistant_scripts_a_stub_reads_the_journal_and_writes_a_test_that_passes() -> None:
    async with assistant() as client:
        started = await call(client, "start_controller", brokers=1)
        assert (await call(client, "health"))["bootstrap"] == started["bootstrap"]
        stub = await call(client, "add_stub", stub=NOT_CONTROLLER)
        served_by = f"stub {stub['id']}"
        refused: list[tuple[str, str]] = []
        while not refused:
            requests = (await call(client, "requests", limit=200))["requests"]
            refused = [(each["api"], each["error"]) for each in requests if each["servedBy"] == served_by]
        assert refused == [("BrokerHeartbeat", "NOT_CONTROLLER")]
        verified = await call(client, "verify", match=HEARTBEATS, at_least=5, within_ms=30_000)
        assert verified["verified"], verified["report"]
        assert "RegisterBroker" in str(await call(client, "records"))

        source = await call(client, "write_test", name="retries", brokers=[1], expected=[{**HEARTBEATS, "atLeast": 2}])
        assert "injectError" in source
        found: dict[str, Any] = {}
        exec(source, found)
        with Controller.sync() as controller:
            await asyncio.to_thread(found["test_retries"], controller)
            controller.assert_all_stubs_used()


async def test_errors_name_the_wrong_field_and_tools_that_only_read_say_so() -> None:
    async with assistant() as client:
        assert "call start_controller" in await refusal(client, "brokers")
        await call(client, "start_controller")
        wrong = await refusal(client, "add_stub", stub={"match": {"api": "BrokerHeartbeet"}})
        assert "did you mean BrokerHeartbeat" in wrong
        assert "at most 100" in await refusal(client, "start_controller", brokers=101)
        assert "3.7" in await refusal(client, "start_controller", release="2.8")

        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert all(tool.description for tool in tools.values())
        reading = {name for name, tool in tools.items() if tool.annotations and tool.annotations.read_only_hint}
        assert {"health", "requests", "records", "verify", "write_test"} <= reading
        assert not reading & {"start_controller", "add_stub", "change_broker", "reset"}
        destructive = {name for name, tool in tools.items() if tool.annotations and tool.annotations.destructive_hint}
        assert destructive == tools.keys() - reading - {"add_stub", "add_fault"}


async def test_controller_of_others_is_read_only_unless_allowed() -> None:
    async with Controller(brokers=1, admin_port=0) as controller:
        async with assistant("--admin", controller.admin_url) as client:
            assert (await call(client, "health"))["brokers"]["total"] == 1
            assert "--allow-changes" in await refusal(client, "change_broker", broker_id=1, command="fence")
            assert not controller.state.broker(1).fenced
        async with assistant("--admin", controller.admin_url, "--allow-changes") as client:
            await call(client, "add_fault", fault={"kind": "latency", "params": {"latencyMs": 1}})
            assert [each.kind.name for each in controller.faults.active] == ["latency"]


@soak
async def test_twin_of_a_real_controller_is_read_only_unless_allowed() -> None:
    twin = {"twin_of": str(CAPTURE), "twin_at": "100"}
    async with assistant() as client:
        await call(client, "start_controller", **twin)
        assert [each["brokerId"] for each in (await call(client, "brokers"))["brokers"]] == [1, 2]
        assert "read only" in await refusal(client, "change_broker", broker_id=1, command="fence")
        assert "no such" in (await refusal(client, "start_controller", twin_of="/nowhere")).lower()
    async with assistant("--allow-changes") as client:
        await call(client, "start_controller", **twin)
        await call(client, "change_broker", broker_id=1, command="fence")


@soak
def test_controller_of_its_own_takes_no_data_directory_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOCKRAFT_DATA_DIR", str(tmp_path / "of-others"))
    with Controllers(None) as controllers:
        controllers.start("serve", [])
        assert controllers.to_change().get("/v1/health")["brokers"]["total"] == 0
    assert not (tmp_path / "of-others").exists()


@each_row(
    ("options", "about"),
    [
        (["--admin", "notaurl"], "'notaurl' is no URL such as http://127.0.0.1:8080"),
        (["--token-file", "nope"], "the token is of the API at --admin, which is not given"),
    ],
)
def test_wrong_options_are_refused_at_the_start(options: list[str], about: str) -> None:
    ended = invoke("mcp", *options)
    assert ended.exit_code == 2
    assert about in one_line(ended.stderr)


def test_name_of_a_written_test_is_an_identifier() -> None:
    with pytest.raises(ValueError, match="lower case"):
        written("x(): pass\nimport os", [], [], [], [])


def test_written_test_has_the_same_faults() -> None:
    def shown(controller: SyncController) -> list[Any]:
        listed = AdminClient(controller.admin_url).get("/v1/faults")["faults"]
        return [[each[name] for name in ("kind", "params", "toxicity", "enabled")] for each in listed]

    given: ControllerOptions = {"admin_port": 0, "assert_all_used": False}
    with Controller.sync(**given) as controller, Controller.sync(**given) as repeated:
        api = AdminClient(controller.admin_url)
        api.send("POST", "/v1/faults", {"kind": "latency", "params": {"latencyMs": 5}, "toxicity": 0})
        api.send("POST", "/v1/faults", {"kind": "latency", "params": {"latencyMs": 6}, "enabled": False})
        namespace: dict[str, Any] = {}
        exec(written("again", [], [], api.get("/v1/faults")["faults"], []), namespace)
        namespace["test_again"](repeated)
        assert shown(repeated) == shown(controller)
