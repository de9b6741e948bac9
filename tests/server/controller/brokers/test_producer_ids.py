import pytest
from mockraft.server.controller.brokers import producer_ids
from mockraft.server.controller.result import ApiError
from mockraft.wire import error_codes
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.producer_ids_record import ProducerIdsRecord

from ....conftest import Cluster


def allocate(cluster: Cluster, broker_id: int, epoch: int | None = None) -> int:
    epoch = cluster.broker(broker_id).broker_epoch if epoch is None else epoch
    cluster.mark()
    return cluster.controller.commit(producer_ids.allocate_block(cluster.controller, broker_id, epoch), cluster.now_ms)


def test_blocks_begin_at_0_and_follow_each_other(cluster: Cluster) -> None:
    cluster.start(1, 2)
    assert [allocate(cluster, 1), allocate(cluster, 2), allocate(cluster, 1)] == [0, 1000, 2000]
    epoch = cluster.broker(1).broker_epoch
    assert cluster.written() == [RecordAt(ProducerIdsRecord(broker_id=1, broker_epoch=epoch, next_producer_id=3000), 0)]


def test_refuses_a_broker_that_is_not_registered_at_this_epoch(cluster: Cluster) -> None:
    cluster.start(1)
    for broker_id, epoch in ((1, cluster.broker(1).broker_epoch - 1), (2, 7)):
        with pytest.raises(ApiError) as refused:
            allocate(cluster, broker_id, epoch)
        assert refused.value.error_code == error_codes.STALE_BROKER_EPOCH


def test_the_last_block_ends_within_64_bits(cluster: Cluster) -> None:
    cluster.start(1)
    cluster.write(RecordAt(ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=2**63 - 1001), 0))
    assert allocate(cluster, 1) == 2**63 - 1001
    with pytest.raises(ApiError) as refused:
        allocate(cluster, 1)
    assert refused.value.error_code == error_codes.UNKNOWN_SERVER_ERROR
