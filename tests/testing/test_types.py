"""Types and help texts of the test double, as mypy and `help()` see them."""

import dataclasses
import inspect
import pydoc
import re
import subprocess
import sys
from pathlib import Path

import pytest
from mockraft import Controller, Quorum, SimulatedBroker, SyncQuorum, SyncSimulatedBroker
from mockraft.server.stubs.match import Match

SNIPPET = """
import copy
from typing import cast
from mockraft import ApiName, AwaitedController, BrokerState, Controller, Quorum, Stub, stub
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.broker_heartbeat_response import BrokerHeartbeatResponse

with Controller.sync(session_timeout_ms=3, brokers=1) as controller:
    broker = controller.start_broker(1, rack="a")
    broker.wait_until(broker.state, 10)
    controller.faults.fence(broker_id=1)
    controller.faults.latency(latency_ms=3, client_id="a")
    controller.state.fence(1)
    controller.stub("Fetch").once().drop()
    broker_id: int = controller.verify(1, BrokerHeartbeatRequest)[0].request.broker_id
    is_fenced: bool = controller.wait_for(BrokerHeartbeatRequest, want_fence=True)[0].response.is_fenced
    epoch: int = controller.requests("BrokerHeartbeat", broker_id=1)[0].request.broker_epoch
    is_fenced = controller.verify(at_least=1, match="BrokerHeartbeat")[0].response.is_fenced
    validate_only: bool = controller.wait_for("CreateTopics", timeout_s=1)[0].request.validate_only
    anything: str = controller.requests()[0].request.broker_id
    anything = controller.requests(cast(ApiName, anything))[0].request.broker_id
    stub("JoinGroup", "Produce", 68, broker=1, client_id__startswith="a", where={"groupId": "g"}).inject_error(35)
    stub("CreateTopics", topic="a", timeout_ms__gte=1).where(validate_only=True).inject_error("NOT_CONTROLLER")
    controller.faults.add("latency", latency_ms=3)
    answer: BrokerHeartbeatResponse = controller.ask(BrokerHeartbeatRequest())
    Controller.sync(sesion_timeout_ms=3)  # error
    Controller.sync(session_timeout_ms="3")  # error
    controller.start_broker(1, rak="a")  # error
    controller.faults.fense()  # error
    controller.faults.add("fense")  # error
    controller.faults.registration_never_succeeds(error="NOPE")  # error
    controller.stub("CreateTopics", brokr_id=1)  # error
    stub("CreateTopics", topics__name="a", user__in=["a"])
    controller.stub("CreateTopics", topics__nam="a")  # error
    controller.stub("CreateTopicz")  # error
    stub("CreateTopicz")  # error
    stub("CreateTopics", brokr_id=1)  # error
    stub("CreateTopics").where(timeout=1)  # error
    stub("CreateTopics").inject_error("NOPE")  # error
    controller.verify(1, "Nope")  # error
    controller.requests("Nope")  # error
    controller.wait_for("Nope")  # error
    controller.verify(1, anything)  # error
    controller.requests("CreateTopics")[0].request.timeout  # error
    controller.faults.latency(latency_ms="slow")  # error
    controller.state.fense(1)  # error
    controller.stub("Fetch").onse()  # error
    broker.wait_until("running")  # error
    controller.verify(1, BrokerHeartbeatRequest)[0].request.brokerid  # error
    controller.wait_for(BrokerHeartbeatRequest)[0].response.isfenced  # error
    text: str = controller.requests(BrokerHeartbeatRequest)[0].request.broker_epoch  # error
    controller.verify(1, BrokerHeartbeatResponse)  # error
    controller.ask(BrokerHeartbeatRequest()).isfenced  # error
    controller.ask("BrokerHeartbeat")  # error
    copied: Stub = copy.copy(controller.stub("Fetch"))
    broker.kill().real  # error
with Quorum.sync(3, strict=True, brokers=1) as quorum:
    quorum.start_broker(2, rack="a").shut_down()
    quorum.brokers[1].config.rak  # error
    leader: int = quorum.wait_for_leader()
    name: str = quorum.resign()  # error
    quorum.elect("one")  # error
    url: int = quorum.bootstrap  # error

async def waits(controller: AwaitedController, own: Quorum) -> None:
    broker = await controller.start_broker(1, rack="a")
    await broker.wait_until(BrokerState.RUNNING)
    broker.fail_log_dir("/d1")
    is_fenced: bool = (await controller.wait_for(BrokerHeartbeatRequest))[0].response.is_fenced
    answer: BrokerHeartbeatResponse = await controller.ask(BrokerHeartbeatRequest())
    topics = (await controller.wait_for("CreateTopics"))[0].request.topics
    topics[0].nam  # error
    await broker.wait_until("running")  # error
    controller.wait_for("Fetch")[0]  # error
    for each in own.brokers.values():
        await each.kill()
"""


CHECKERS = {"mypy": ["--strict"], "pyright": ["--pythonpath", sys.executable]}


@pytest.mark.one_python
@pytest.mark.parametrize("checker", ["mypy", pytest.param("pyright", marks=pytest.mark.programs)])
def test_names_fields_options_and_faults_are_checked(checker: str, tmp_path: Path) -> None:
    (tmp_path / "snippet.py").write_text(SNIPPET)
    command = [sys.executable, "-m", checker, *CHECKERS[checker], "snippet.py"]
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    found = re.finditer(r"snippet\.py:(\d+):.* error: ", checked.stdout)
    errors = {int(each[1]) for each in found}
    expected = {number for number, line in enumerate(SNIPPET.splitlines(), 1) if line.endswith("# error")}
    assert errors == expected, checked.stdout + checked.stderr


def test_conditions_of_matches_have_a_type() -> None:
    declared = Path(__file__).parents[2].joinpath("server", "request_types.pyi").read_text()
    assert [each.name for each in dataclasses.fields(Match) if f"    {each.name}: " not in declared] == ["api"]


def test_blocking_methods_keep_signature_and_docstring() -> None:
    assert inspect.signature(SyncQuorum.elect) == inspect.signature(Quorum.elect)
    assert SyncSimulatedBroker.kill.__doc__ == SimulatedBroker.kill.__doc__


def test_help_and_repr_show_what_runs() -> None:
    assert re.fullmatch("<SyncQuorum of <Quorum of 3 controllers, not running>>", repr(Quorum.sync(3)))
    assert re.fullmatch("<SyncController of <Controller 3000, not running>>", repr(Controller.sync()))
    with Controller.sync(brokers=1) as controller:
        shown = {
            controller: r"<SyncController of <Controller 3000, at 127\.0\.0\.1:\d+, 1 brokers>>",
            controller.brokers[1]: "<SyncSimulatedBroker of <SimulatedBroker 1, RUNNING>>",
            controller.state: "<StateFacade of <State of nodes 3000>>",
            controller.faults: "<ControllerFaultsFacade of <faults, 1 active>>",
            controller.faults.latency(
                latency_ms=0, client_id="nobody"
            ): "<SwitchedOnFacade of <SwitchedOn latency-1, fired 0 times>>",
        }
        for each, pattern in shown.items():
            assert re.fullmatch(pattern, repr(each)), repr(each)
            public = {name: getattr(type(each), name, None) for name in dir(type(each)) if not name.startswith("_")}
            assert [name for name, member in public.items() if not inspect.getdoc(member)] == []
        assert "Fence a broker" in pydoc.render_doc(controller.state)
        assert "timeout_s" in pydoc.render_doc(controller.wait_for)
