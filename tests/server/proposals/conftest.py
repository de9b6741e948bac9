"""Messages as a broker built to a proposal sends them."""

from collections.abc import Callable
from typing import Any

import pytest
from mockraft.server.controller.features import supported_features


@pytest.fixture
def registration() -> Callable[..., Any]:
    """`registration(controller, broker_id, **fields)`: a BrokerRegistrationRequest of the controller's own messages."""

    def make(controller: Any, broker_id: int, **fields: Any) -> Any:
        module = controller.messages.module("BrokerRegistrationRequest")
        features = [
            module.Feature(name=name, min_supported_version=f.min_level, max_supported_version=f.max_level)
            for name, f in supported_features().items()
        ]
        listener = module.Listener(name="PLAINTEXT", host=f"b{broker_id}", port=9092)
        return module.BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=controller.cluster_id,
            incarnation_id=bytes([9] * 15 + [broker_id]),
            listeners=[listener],
            features=features,
            **fields,
        )

    return make
