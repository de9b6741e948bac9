"""Messages of a proposal beside Kafka's own, or in their place: the lookups of `messages` and `records` over both.

An Overlay is a value: two controllers of one process may use different ones, and Kafka's own classes are not modified.
`mockraft.codegen.overlay.load` makes it from schema files, as generating code is not part of this package.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType

from mockraft.wire import api_keys, messages, records, schema_files
from mockraft.wire.message import Message
from mockraft.wire.schema_files import Schema


@dataclass(frozen=True, eq=False)
class OverlaidMessage:
    """One message of an overlay: its schema, what makes its class, and the listeners that its schema offers it on."""

    schema: Schema
    make: Callable[[], type[Message]]
    listeners: tuple[str, ...] = ()

    @cached_property
    def cls(self) -> type[Message]:
        """The class, made when it is first asked for."""
        return self.make()


class Overlay:
    """Kafka's messages and records with some replaced or added, by name, by API key and by record type.

    `requests`, `responses` and `record_types` are names by number; `overlaid` holds the messages that differ from
    Kafka's, by name.
    """

    def __init__(self, overlaid: Iterable[OverlaidMessage] = ()) -> None:
        self.overlaid = {found.schema.name: found for found in overlaid}
        self.requests = {**messages.REQUESTS, **self._by_number("request")}
        self.responses = {**messages.RESPONSES, **self._by_number("response")}
        self.record_types = {**records.TYPES, **self._by_number("metadata")}
        of_metadata = {name for name, found in self.overlaid.items() if found.schema.kind == "metadata"}
        self.record_names = (*records.NAMES, *sorted(of_metadata - {*records.NAMES}))
        self.message_names = (*messages.NAMES, *sorted(self.overlaid.keys() - {*messages.NAMES, *self.record_names}))

    def by_name(self, name: str) -> type[Message]:
        """Return the class of a message or record. Raises WireError for an unknown one."""
        found = self.overlaid.get(name)
        if found is not None:
            return found.cls
        return records.by_name(name) if name in records.NAMES else messages.by_name(name)

    def module(self, name: str) -> ModuleType:
        """Return the module of a message or record, which has the classes of its structs: `module(name).Feature`."""
        return sys.modules[self.by_name(name).__module__]

    def request(self, api_key: int) -> type[Message]:
        """Return the request class of an API key. Raises WireError for an unknown one."""
        name = self.requests.get(api_key)
        return messages.request(api_key) if name is None else self.by_name(name)

    def response(self, api_key: int) -> type[Message]:
        """Return the response class of an API key. Raises WireError for an unknown one."""
        name = self.responses.get(api_key)
        return messages.response(api_key) if name is None else self.by_name(name)

    def by_type(self, record_type: int) -> type[Message]:
        """Return the class of a metadata record type. Raises WireError for an unknown one."""
        name = self.record_types.get(record_type)
        return records.by_type(record_type) if name is None else self.by_name(name)

    def schema(self, name: str) -> Schema:
        """Return the schema of a message or record. Raises WireError for an unknown one."""
        found = self.overlaid.get(name)
        return schema_files.schema(name) if found is None else found.schema

    def request_header_version(self, api_key: int, api_version: int) -> int:
        """Return the same as `messages.request_header_version`."""
        found = self.overlaid.get(self.requests.get(api_key, ""))
        if found is None:
            return messages.request_header_version(api_key, api_version)
        # The generator of Kafka 3.9 knows this exception by its name, too (ApiMessageTypeGenerator).
        if found.schema.name == "ControlledShutdownRequest" and api_version == 0:
            return 0
        return 2 if found.schema.flexible.covers(api_version) else 1

    def response_header_version(self, api_key: int, api_version: int) -> int:
        """Return the same as `messages.response_header_version`."""
        found = self.overlaid.get(self.responses.get(api_key, ""))
        if found is None:
            return messages.response_header_version(api_key, api_version)
        return 1 if found.schema.flexible.covers(api_version) and api_key != api_keys.API_VERSIONS else 0

    @cached_property
    def api_names(self) -> dict[int, str]:
        """Names of the APIs by key, as their schemas spell them (`BrokerHeartbeat`)."""
        return {key: name.removesuffix("Request") for key, name in self.requests.items()}

    def api_name(self, api_key: int) -> str:
        """Return the API's name; an unknown API key as its number."""
        return self.api_names.get(api_key, f"UnknownApi{api_key}")

    def _by_number(self, kind: str) -> dict[int, str]:
        return {found.schema.api_key: name for name, found in self.overlaid.items() if found.schema.kind == kind}

    def __repr__(self) -> str:
        return f"<Overlay {', '.join(sorted(self.overlaid)) or 'of nothing'}>"


SHIPPED = Overlay()
"""Kafka's own messages and nothing else."""

_IN_USE: ContextVar[Overlay] = ContextVar("mockraft.wire.overlay", default=SHIPPED)


def in_use() -> Overlay:
    """Return the overlay of the enclosing `using` block; Kafka's own messages without one."""
    return _IN_USE.get()


@contextmanager
def using(overlay: Overlay) -> Iterator[Overlay]:
    """Let lookups by name (`explain`, the commands) find this overlay's messages within the block."""
    token = _IN_USE.set(overlay)
    try:
        yield overlay
    finally:
        _IN_USE.reset(token)
