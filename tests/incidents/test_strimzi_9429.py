"""strimzi#9429: brokers end, or are fenced, when a controller leads that is not among their voters."""

from pathlib import Path

import pytest
from mockraft import Quorum
from mockraft.kafka.processes import KafkaBroker


@pytest.mark.parametrize("version", ["3.7.2", "4.4.0"])
def test_broker_ends_or_is_fenced_when_an_unconfigured_controller_leads(version: str, tmp_path: Path) -> None:
    release = version.rpartition(".")[0]
    with Quorum.sync(2, release=release, kraft_version=0) as quorum:
        quorum.elect(3000)
        known = quorum.bootstrap.partition(",")[0]
        broker = KafkaBroker(
            1,
            tmp_path,
            quorum.cluster_id,
            known,
            version=version,
            properties={"controller.quorum.voters": f"3000@{known}"},
        )
        with broker:
            broker.wait_until_running()
            quorum.elect(3001)
            if version == "3.7.2":
                broker.wait_for_log("leaderId=3001 and epoch=[0-9]+ since it is not one of the voters", 30, "its end")
                quorum.wait_until(lambda: not broker.running)
            else:
                quorum.wait_until(lambda: quorum.state.broker(1).fenced, 60)
                assert quorum.requests("BrokerHeartbeat", broker_id=1, node=3001) == []
                assert broker.running
