from mockraft.server.apis import allocate_producer_ids
from mockraft.wire import error_codes
from mockraft.wire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest

from ...conftest import Cluster


def test_gives_a_thousand_ids(cluster: Cluster) -> None:
    cluster.start(1)
    request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=cluster.broker(1).broker_epoch)
    first, second = cluster.ask(request), cluster.ask(request)
    assert (first.error_code, first.producer_id_start, first.producer_id_len) == (0, 0, 1000)
    assert (second.error_code, second.producer_id_start, second.producer_id_len) == (0, 1000, 1000)


def test_refuses_a_stale_broker_and_gives_no_ids(cluster: Cluster) -> None:
    response = cluster.ask(AllocateProducerIdsRequest(broker_id=1, broker_epoch=5))
    assert (response.error_code, response.producer_id_start, response.producer_id_len) == (77, 0, 0)
    assert cluster.written() == []


def test_returns_a_top_level_error() -> None:
    response = allocate_producer_ids.API.error(AllocateProducerIdsRequest(), error_codes.NOT_CONTROLLER, "elsewhere")
    assert response.error_code == 41
