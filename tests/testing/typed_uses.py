# ruff: noqa: B018, F841
"""Uses of the test double that type checkers accept or refuse: mypy fails for an `ignore` without an error."""

import copy
from typing import TYPE_CHECKING, cast

from mockraft import ApiName, AwaitedController, BrokerState, Controller, Quorum, Stub, stub
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.broker_heartbeat_response import BrokerHeartbeatResponse

if TYPE_CHECKING:
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
        Controller.sync(sesion_timeout_ms=3)  # type: ignore[call-arg]
        Controller.sync(session_timeout_ms="3")  # type: ignore[arg-type]
        controller.start_broker(1, rak="a")  # type: ignore[call-arg]
        controller.faults.fense()  # type: ignore[attr-defined]
        controller.faults.add("fense")  # type: ignore[arg-type]
        controller.faults.registration_never_succeeds(error="NOPE")  # type: ignore[arg-type]
        controller.stub("CreateTopics", brokr_id=1)  # type: ignore[call-arg]
        stub("CreateTopics", topics__name="a", user__in=["a"])
        controller.stub("CreateTopics", topics__nam="a")  # type: ignore[call-arg]
        controller.stub("CreateTopicz")  # type: ignore[arg-type]
        stub("CreateTopicz")  # type: ignore[arg-type]
        stub("CreateTopics", brokr_id=1)  # type: ignore[call-arg]
        stub("CreateTopics").where(timeout=1)  # type: ignore[call-arg]
        stub("CreateTopics").inject_error("NOPE")  # type: ignore[arg-type]
        controller.verify(1, "Nope")  # type: ignore[arg-type]
        controller.verify(1, "CreateTopics", brokr_id=1)  # type: ignore[call-arg]
        controller.wait_for("CreateTopics", at_least=1)  # type: ignore[call-arg]
        controller.requests("Nope")  # type: ignore[call-overload]
        controller.wait_for("Nope")  # type: ignore[arg-type]
        controller.verify(1, anything)  # type: ignore[arg-type]
        controller.requests("CreateTopics")[0].request.timeout  # type: ignore[attr-defined]
        controller.faults.latency(latency_ms="slow")  # type: ignore[arg-type]
        controller.state.fense(1)  # type: ignore[attr-defined]
        controller.stub("Fetch").onse()  # type: ignore[attr-defined]
        broker.wait_until("running")  # type: ignore[arg-type]
        controller.verify(1, BrokerHeartbeatRequest)[0].request.brokerid  # type: ignore[attr-defined]
        controller.wait_for(BrokerHeartbeatRequest)[0].response.isfenced  # type: ignore[union-attr]
        text: str = controller.requests(BrokerHeartbeatRequest)[0].request.broker_epoch  # type: ignore[assignment]
        controller.verify(1, BrokerHeartbeatResponse)  # type: ignore[arg-type]
        controller.ask(BrokerHeartbeatRequest()).isfenced  # type: ignore[attr-defined]
        controller.ask("BrokerHeartbeat")  # type: ignore[call-overload]
        copied: Stub = copy.copy(controller.stub("Fetch"))
        broker.kill().real  # type: ignore[attr-defined,func-returns-value]
    with Quorum.sync(3, strict=True, brokers=1) as quorum:
        quorum.start_broker(2, rack="a").shut_down()
        quorum.brokers[1].config.rak  # type: ignore[attr-defined]
        leader: int = quorum.wait_for_leader()
        name: str = quorum.resign()  # type: ignore[assignment]
        quorum.elect("one")  # type: ignore[arg-type]
        url: int = quorum.bootstrap  # type: ignore[assignment]

    async def waits(controller: AwaitedController, own: Quorum) -> None:
        broker = await controller.start_broker(1, rack="a")
        await broker.wait_until(BrokerState.RUNNING)
        broker.fail_log_dir("/d1")
        is_fenced: bool = (await controller.wait_for(BrokerHeartbeatRequest))[0].response.is_fenced
        answer: BrokerHeartbeatResponse = await controller.ask(BrokerHeartbeatRequest())
        topics = controller.requests("CreateTopics")[0].request.topics
        topics[0].nam  # type: ignore[attr-defined]
        await broker.wait_until("running")  # type: ignore[arg-type]
        controller.wait_for("Fetch")[0]  # type: ignore[index]
        for each in own.brokers.values():
            await each.kill()
