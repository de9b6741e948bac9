"""Message classes by the names that the command line takes."""

from mockraft.wire.api_keys import RELEASE
from mockraft.wire.errors import WireError
from mockraft.wire.message import Message
from mockraft.wire.names import similar_names
from mockraft.wire.overlay import in_use


def request_name(key: str) -> str:
    """The request class's name for `BrokerHeartbeat`, `BrokerHeartbeatRequest` or `63`; WireError with a suggestion."""
    return _api_name(key, in_use().requests, "Request")


def response_name(key: str) -> str:
    """The response class's name, as `request_name`."""
    return _api_name(key, in_use().responses, "Response")


def record_name(key: str) -> str:
    """A metadata or control record's name for `RegisterBroker`, `RegisterBrokerRecord` or its type `0`."""
    if key.isdecimal():
        return in_use().by_type(int(key)).__name__
    return _named(key, list(in_use().record_names), "Record", "record")


def other_name(key: str) -> str:
    """A message that is neither: RequestHeader, ConsumerProtocolSubscription, DefaultPrincipalData …"""
    return _named(key, [*in_use().message_names, *in_use().record_names], "", "message")


def _api_name(key: str, names: dict[int, str], suffix: str) -> str:
    if key.isdecimal():
        name = names.get(int(key))
        if name is None:
            raise WireError(f"there is no API with the key {key} in Kafka {RELEASE}; they go from 0 to {max(names)}")
        return name
    return _named(key, list(names.values()), suffix, suffix.lower())


def _named(key: str, names: list[str], suffix: str, what: str) -> str:
    by_lower = {name.lower(): name for name in names}
    for spelling in (key, key + suffix):
        found = by_lower.get(spelling.replace("_", "").replace("-", "").lower())
        if found is not None:
            return found
    near = similar_names(key + suffix, names) or similar_names(key, names)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    raise WireError(f"there is no {what} called {key!r}{hint}")


def class_named(name: str) -> type[Message]:
    """The class of a message or record."""
    return in_use().by_name(name)
