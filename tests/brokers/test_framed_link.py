"""The handshake of a connection without a socket."""

from __future__ import annotations

from mockraft.brokers.effects import Link, Opened
from mockraft.brokers.framed_link import FramedLink
from mockraft.wire import api_keys, error_codes
from mockraft.wire.connection import API_VERSIONS_MAX, write_response
from mockraft.wire.messages.api_versions_response import ApiVersion, ApiVersionsResponse


def test_handshake_is_repeated_in_the_newest_version_that_the_controller_has() -> None:
    link = Link("heartbeats", "1", "h", 1, 1_000)
    framed = FramedLink(link)
    assert framed.open()[4:8] == bytes([0, api_keys.API_VERSIONS, 0, API_VERSIONS_MAX])
    offered = [ApiVersion(api_key=api_keys.API_VERSIONS, min_version=0, max_version=3)]
    refused = ApiVersionsResponse(error_code=error_codes.UNSUPPORTED_VERSION, api_keys=offered)
    assert framed.receive(write_response(refused.write(0), 0, 0)) == []
    assert framed.data_to_send()[4:12] == bytes([0, api_keys.API_VERSIONS, 0, 3, 0, 0, 0, 1])
    assert framed.data_to_send() == b""
    accepted = ApiVersionsResponse(api_keys=offered)
    assert framed.receive(write_response(accepted.write(3), 1, 0)) == [Opened(link, {api_keys.API_VERSIONS: (0, 3)})]
