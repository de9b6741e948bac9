"""Bytes to JSON and back in the forms that `mockraft decode` and `encode` know: bare bodies, frames, framed records."""

from typing import NamedTuple

from mockraft.wire import metadata_log_frame
from mockraft.wire.api_keys import RELEASE
from mockraft.wire.errors import WireError
from mockraft.wire.json_form import Json, Tree, from_json, to_json
from mockraft.wire.message import Message
from mockraft.wire.names import similar_names
from mockraft.wire.overlay import in_use
from mockraft.wire.redaction.messages import masked


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


TRAILING = "trailingBytes"
REQUEST, RESPONSE, RECORD, OTHER, BATCHES = "request", "response", "record", "message", "batches"


class Subject(NamedTuple):
    """Kind of the bytes: a class by name and version, None where the frame has them."""

    kind: str
    name: str | None
    version: int | None
    is_framed: bool

    @property
    def title(self) -> str:
        """For people: `BrokerHeartbeatRequest v1`."""
        version = "" if self.version is None else f" v{self.version}"
        return f"{self.name or self.kind}{version}{' with its frame' if self.is_framed else ''}"

    def named(self) -> tuple[str, int]:
        """Name and version, where the options must have both."""
        if self.name is None or self.version is None:
            raise WireError("which message, and in which version?")
        return self.name, self.version


def decode(subject: Subject, data: bytes, *, show_secrets: bool = False) -> Tree:
    """The JSON tree of the bytes. A frame gives {"header", "body"}, a framed record {"type", "version", "data"}."""
    if subject.is_framed:
        decode_framed = _decode_record if subject.kind == RECORD else _decode_frame
        return decode_framed(subject, data, show_secrets)
    name, version = subject.named()
    try:
        return _tree(class_named(name).read(data, version), version, show_secrets)
    except WireError:
        # The value of a log record is easily taken for the record: it is the same with three numbers before it.
        framed = subject._replace(is_framed=True)
        if subject.kind == RECORD and data[:1] == b"\x01" and is_readable(framed, data):
            return _object(_decode_record(framed, data, show_secrets), "data")
        raise


def encode(subject: Subject, tree: Tree) -> bytes:
    """The bytes of a tree as `decode` gives it; with a frame, a body alone is given a header of its own."""
    if not subject.is_framed:
        return _write(*subject.named(), tree)
    if subject.kind == RECORD:
        return _encode_record(subject, tree)
    return _encode_frame(subject, tree)


def is_readable(subject: Subject, data: bytes) -> bool:
    """Return True if the bytes are of the subject's kind."""
    try:
        decode(subject, data)
    except WireError:
        return False
    return True


def hints(subject: Subject, data: bytes) -> list[str]:
    """Return options to try: other kinds that the bytes may be."""
    found = []
    if subject.kind in (REQUEST, RESPONSE):
        if not subject.is_framed and is_readable(subject._replace(is_framed=True), data):
            found.append("with --frame: they are a whole frame")
        elif subject.is_framed and subject.version is not None and is_readable(subject._replace(is_framed=False), data):
            found.append("without --frame: they are a bare body")
    # The frame of a request or a record has its version; a response's does not.
    has_version = subject.is_framed and subject.kind != RESPONSE
    if subject.name is not None and subject.version is not None and not has_version:
        cls = class_named(subject.name)
        others = [v for v in range(cls.min_version, cls.max_version + 1) if v != subject.version]
        versions = [str(v) for v in others if is_readable(subject._replace(version=v), data)]
        if versions:
            found.append(f"with --version {' or '.join(versions)}: in that they can be read")
        counterpart = _counterpart(subject)
        if counterpart is not None and is_readable(counterpart, data):
            found.append(f"with --{counterpart.kind}: they can be read as {counterpart.title}")
    return found


def _counterpart(subject: Subject) -> Subject | None:
    if subject.kind not in (REQUEST, RESPONSE) or subject.name is None:
        return None
    api_key = class_named(subject.name).api_key
    kind, names = (RESPONSE, in_use().responses) if subject.kind == REQUEST else (REQUEST, in_use().requests)
    return subject._replace(kind=kind, name=names[api_key])


def _tree(message: Message, version: int, show_secrets: bool) -> Tree:
    return to_json(message if show_secrets else masked(message, in_use()), version)


def _decode_frame(subject: Subject, data: bytes, show_secrets: bool) -> Tree:
    size = int.from_bytes(data[:4], signed=True)
    if len(data) < 4 or size != len(data) - 4:
        found_size = (
            f"it says {size} bytes, {len(data) - 4} follow" if len(data) >= 4 else f"there are only {len(data)}"
        )
        raise WireError(f"a frame starts with 4 bytes of size: {found_size}", field="size", offset=0)
    if subject.kind == REQUEST:
        if len(data) < 8:
            raise WireError("the bytes end before the request's API key and version", field="header", offset=4)
        api_key, version = (int.from_bytes(data[at : at + 2], signed=True) for at in (4, 6))
        if subject.name is not None and class_named(subject.name).api_key != api_key:
            raise WireError(f"this is a {in_use().api_name(api_key)} request (key {api_key})", field="header", offset=4)
        body_class = in_use().request(api_key)
        header, header_version = "RequestHeader", in_use().request_header_version(api_key, version)
    else:
        name, version = subject.named()
        body_class = class_named(name)
        header, header_version = "ResponseHeader", in_use().response_header_version(body_class.api_key, version)
    head, offset = class_named(header).read_from(data, header_version, 4)
    body, end = body_class.read_from(data, version, offset)
    tree: Tree = {"header": to_json(head, header_version), "body": _tree(body, version, show_secrets)}
    if end < len(data) and subject.kind == REQUEST:
        # Kafka does not read them, and answers: librdkafka 0.11 sends ApiVersions so.
        return tree | {TRAILING: len(data) - end}
    if end != len(data):
        raise WireError(f"{body_class.__name__} v{version}: {len(data) - end} bytes too many", offset=end)
    return tree


def _encode_frame(subject: Subject, tree: Tree) -> bytes:
    header, body = ({}, tree)
    if set(tree) - {TRAILING} == {"header", "body"}:
        header, body = _object(tree, "header"), _object(tree, "body")
    name: str | None = subject.name
    version: Json = subject.version
    if subject.kind == REQUEST:
        api_key = header.get("requestApiKey") if name is None else class_named(name).api_key
        version = header.get("requestApiVersion") if version is None else version
        if not isinstance(api_key, int) or not isinstance(version, int):
            raise WireError("the header says no requestApiKey and requestApiVersion; give --request and --version")
        name = in_use().request(api_key).__name__
        given: Tree = {"correlationId": 0, "clientId": "mockraft"}
        header = {**given, **header, "requestApiKey": api_key, "requestApiVersion": version}
        head = _write("RequestHeader", in_use().request_header_version(api_key, version), header)
    else:
        name, version = subject.named()
        header_version = in_use().response_header_version(class_named(name).api_key, version)
        head = _write("ResponseHeader", header_version, {"correlationId": 0} | header)
    written = head + _write(name, version, body)
    return len(written).to_bytes(4) + written


def _decode_record(subject: Subject, data: bytes, show_secrets: bool) -> Tree:
    record, version = metadata_log_frame.decode(data, in_use().by_type)
    name = type(record).__name__
    if subject.name is not None and name != subject.name:
        raise WireError(f"this is a {name} (type {record.api_key})", field="recordType", offset=1)
    if subject.version is not None and version != subject.version:
        raise WireError(f"this is version {version} of {name}", field="recordVersion", offset=2)
    return {"type": name, "version": version, "data": _tree(record, version, show_secrets)}


def _encode_record(subject: Subject, tree: Tree) -> bytes:
    data = tree
    name: Json = subject.name
    version: Json = subject.version
    if set(tree) == {"type", "version", "data"}:
        data = _object(tree, "data")
        name, version = name or tree["type"], tree["version"] if version is None else version
    if not isinstance(name, str) or not isinstance(version, int):
        raise WireError("the JSON says no type and version; give --record and --version")
    return metadata_log_frame.encode(from_json(class_named(record_name(name)), data, version), version)


def _object(tree: Tree, key: str) -> Tree:
    found = tree[key]
    if not isinstance(found, dict):
        raise WireError(f"expected an object, got {found!r}", field=key)
    return found


def _write(name: str, version: int, tree: Tree) -> bytes:
    return from_json(class_named(name), tree, version).write(version)
