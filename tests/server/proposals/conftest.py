"""A controller with a profile, and messages as a broker built to that proposal sends them."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from mockraft.server.apis.overlaid import apis_over
from mockraft.server.controller.image import Image
from mockraft.testing.proposals import overlay_of, proposals_of
from mockraft.wire import metadata_log_frame, record_batch
from mockraft.wire.messages.broker_registration_request import BrokerRegistrationRequest
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.recast import recast

from ...conftest import Cluster, registration_request


class Proposed(Cluster):
    """A controller that speaks profiles and schemas.

    `ask` recasts what the rig builds to their words, and `said` reads bytes of the log as they do.
    """

    def __init__(self, *profiles: str, schemas: Iterable[Path] = (), **options: Any) -> None:
        overlay = overlay_of(profiles, schemas)
        assert overlay is not None
        self.overlay = overlay
        super().__init__(proposals=proposals_of(profiles), overlay=self.overlay, **options)
        self.apis = apis_over(self.apis, self.overlay)

    def ask(self, request: Any, version: int | None = None, **how: Any) -> Any:
        worded = self.overlay.request(request.api_key)
        return super().ask(request if type(request) is worded else recast(request, worded), version, **how)

    def registration_request(self, broker_id: int, **fields: Any) -> Any:
        result = {name: fields.pop(name) for name in ("cordoned_log_dirs",) if name in fields}
        request = recast(super().registration_request(broker_id, **fields), self.overlay.request(62))
        for name, value in result.items():
            setattr(request, name, value)
        return request

    def heartbeat(self, broker_id: int, version: int | None = None, **fields: Any) -> Any:
        version = self.overlay.request(63).max_version if version is None else version
        return super().heartbeat(broker_id, version, **fields)

    def said(self) -> list[RecordAt]:
        """The records since the last request as they are in the log's bytes, in the profiles' words."""
        values = [
            value
            for batch in record_batch.read_batches(self.log.read(self._mark, 1 << 30))
            for _, value in batch.records
        ]
        return [metadata_log_frame.decode(value or b"", self.overlay.by_type) for value in values]

    def replayed(self) -> Image:
        """The image built from the log's bytes."""
        image = Image()
        for offset, (record, _) in self.log.records():
            image.apply(record, offset)
        return image


@pytest.fixture
def proposed() -> type[Proposed]:
    """`proposed(*profiles, schemas=(), **options)`: a controller that speaks these."""
    return Proposed


@pytest.fixture
def registration() -> Callable[..., Any]:
    """`registration(controller, broker_id, **fields)`: a BrokerRegistrationRequest of the controller's own messages."""

    def make(controller: Any, broker_id: int, **fields: Any) -> Any:
        worded = controller.messages.request(BrokerRegistrationRequest.api_key)
        request = recast(registration_request(controller.cluster_id, broker_id), worded)
        for name, value in fields.items():
            setattr(request, name, value)
        return request

    return make
