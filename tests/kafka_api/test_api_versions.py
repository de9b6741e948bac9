"""Validity of ApiVersions requests, as ApiVersionsRequest.isValid of 4.4.0 has it."""

from mockraft.kafka_api.api import is_valid
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest

from ..rows import each_row


@each_row(
    ("cluster_id", "node_id", "version", "valid"),
    [
        (None, -1, 5, True),
        ("a cluster", 1, 5, True),
        ("a cluster", -2, 5, True),
        (None, -2, 5, False),
        (None, 1, 5, False),
        ("a cluster", -1, 5, False),
        (None, 1, 4, True),
    ],
)
def test_a_cluster_and_a_node_are_named_together(
    cluster_id: str | None, node_id: int, version: int, valid: bool
) -> None:
    request = ApiVersionsRequest(
        client_software_name="a-client", client_software_version="1.0", cluster_id=cluster_id, node_id=node_id
    )
    assert is_valid(request, version) is valid
