"""A copy of a history without names and secrets, safe to attach to a ticket, that opens as the original does.

`Redactor` walks each record by its schema. A text becomes a keyed hash (HMAC-SHA256) as a whole, everywhere the same,
unless all of it is one of Kafka's own (`_WORDS`): nothing is looked for inside a text. Without the key nobody can
compute or try names; with it and the source, `Redactor.reveal` turns hashes back. Two relations need more than that:

- A principal is a type and a name, so that `User:alice` has the name of the SCRAM credential of `alice`.
- A text that begins with the prefixes of ACLs is the hash of each prefix and then its own, so that a copy of an ACL
  still matches the topics, groups and users that it did.

Bytes are asterisks, values of sensitive and of unknown configs "hidden", unknown tagged fields dropped, records of a
newer Kafka NoOpRecords, unknown control records empty. Numbers, Booleans and UUIDs stay, as do ids, numbers and
enumerations in configs, which are parsed and written again.

Letters and digits alternate in a hash, so that no word and no number appears in one by chance.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from copy import copy
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeVar

from mockraft.files.given_files import read_file
from mockraft.kafka_api.authorization.acl_types import PatternType
from mockraft.kafka_configs import config_keys, config_values
from mockraft.kafka_configs.config_keys import ConfigKey
from mockraft.releases import release
from mockraft.server.controller.log.segments import StoredBatch
from mockraft.server.controller.log.snapshot import Snapshot
from mockraft.server.controller.settings.client_quotas import CLIENT_ID, IP, KEYS, USER
from mockraft.twin.history import History, SourceError
from mockraft.wire import metadata_log_frame, record_batch, records, schema_files, topic_names
from mockraft.wire.client_security import PROTOCOLS
from mockraft.wire.errors import ApiError, WireError
from mockraft.wire.java_values import split_trimmed
from mockraft.wire.message import Message, Struct
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.record_batch import BatchHeader
from mockraft.wire.records.access_control_entry_record import AccessControlEntryRecord
from mockraft.wire.records.config_record import ConfigRecord
from mockraft.wire.records.no_op_record import NoOpRecord
from mockraft.wire.redaction.masks import asterisks
from mockraft.wire.redaction.secret_fields import is_sensitive
from mockraft.wire.schema_files import FieldSpec, StructSpec

M = TypeVar("M", bound=Message)
S = TypeVar("S", bound=Struct)

KEY_BYTES_MIN: Final = 16
HIDDEN_VALUE: Final = "hidden"
_NO_CLUSTER_ID: Final = "no cluster id"

_PAIRS: Final = [letter + digit for letter in "ghjklmnpqrstvwxz" for digit in "23456789"]
_HASH_PAIRS: Final = 7
"""Pairs of a hash: 49 bits in 14 characters."""
_HASH: Final = re.compile(rf"(?:[g-z][2-9]){{{_HASH_PAIRS}}}")
_PREFIXES_MAX: Final = 16
"""With as many prefixes a topic's name has less than its 249 characters."""

_WORDS: Final = frozenset(
    (
        *("", "*", "User", "ANONYMOUS", "kafka-cluster", "Bootstrap records", "localhost", "127.0.0.1", "::1"),
        *(*topic_names.INTERNAL, topic_names.CLUSTER_METADATA, "__remote_log_metadata"),
        *(*PROTOCOLS, "CONTROLLER", "BROKER", "INTERNAL", "EXTERNAL", "CLIENT", "REPLICATION"),
        *(USER, CLIENT_ID, IP, *KEYS, *release().features),
    )
)
"""Kafka's own texts, and customary names of listeners and of this host."""

_REPLACED: Final = ("string", "bytes", "records")
"""Kinds of fields that are not numbers, Booleans or UUIDs."""
_PRINCIPALS: Final = frozenset(("principal", "owner", "requester", "renewers"))
_ACL_FRAME: Final = metadata_log_frame.prefix(AccessControlEntryRecord.api_key, 0)
_NODES: Final = (config_keys.BROKER, config_keys.BROKER_LOGGER)
_PARSED: Final = frozenset(("INT", "LONG", "SHORT", "DOUBLE", "BOOLEAN"))
_ID: Final = r"(?:0|[1-9][0-9]{0,9})"
_REPLICAS_KEY: Final = "replication.throttled.replicas"
"""End of the names of configs with partitions and brokers, as `0:101,1:102`."""
_REPLICAS: Final = re.compile(rf"{_ID}:{_ID}(?:,{_ID}:{_ID})*")


class Redactor:
    """Redaction with one key; `originals` are the texts so far by their hash."""

    def __init__(self, key: bytes, prefixes: Iterable[str] = ()) -> None:
        """Take a key. ValueError for one that could be tried."""
        if len(key) < KEY_BYTES_MIN:
            about = f"a key of {len(key)} bytes can be guessed"
            raise ValueError(f"{about}: it needs {KEY_BYTES_MIN} (mockraft random-uuid)")
        self._key = key
        self._prefixes: dict[int, set[str]] = {}
        self.add_prefixes(prefixes)
        self.originals: dict[str, str] = {}
        self.unknown_records = 0

    def add_prefixes(self, prefixes: Iterable[str]) -> None:
        """Add prefixes of ACLs, by their lengths: a text of 32 KB is not tried at each of its characters."""
        for prefix in filter(None, prefixes):
            self._prefixes.setdefault(len(prefix), set()).add(prefix)

    def text(self, text: str) -> str:
        """Return one of Kafka's own texts as it is, and the hash of any other text, after those of its prefixes."""
        if text in _WORDS:
            return text
        lengths = sorted(length for length in self._prefixes if length < len(text))
        starts = [text[:length] for length in lengths if text[:length] in self._prefixes[length]]
        parts = ["", *starts[:_PREFIXES_MAX], text]
        return "".join(self._hash(each, each[len(start) :]) for start, each in pairwise(parts))

    def reveal(self, text: str) -> str:
        """Return a text in which the hashes so far are the original texts."""
        return _HASH.sub(lambda match: self.originals.get(match[0], match[0]), text)

    def record(self, at: RecordAt) -> RecordAt:
        """Return a redacted copy of a record."""
        change = self._config if isinstance(at.record, ConfigRecord) else self._message
        return RecordAt(change(at.record), at.version)

    def batch(self, data: bytes, header: BatchHeader) -> bytes:
        """Return a redacted batch; offsets, epochs and times stay. WireError if it cannot be read."""
        batch = record_batch.read_batch(data, header)
        change = self._control if header.is_control else self._data
        return record_batch.with_records(data, header, [change(key, value or b"") for key, value in batch.records])

    def _data(self, key: bytes | None, value: bytes) -> tuple[None, bytes]:
        if key is not None:
            raise WireError("a metadata record with a key")
        try:
            return None, metadata_log_frame.encode(*self.record(metadata_log_frame.decode(value)))
        except WireError:
            self.unknown_records += 1
            return None, metadata_log_frame.encode(NoOpRecord(), 0)

    def _control(self, key: bytes | None, value: bytes) -> tuple[bytes, bytes]:
        control_type = record_batch.control_type(key)
        key = record_batch.control_key(control_type)
        name = record_batch.CONTROL_RECORDS.get(control_type)
        version = int.from_bytes(value[:2], signed=True)
        if name is None or version > records.by_name(name).max_version:
            self.unknown_records += 1
            return key, b""
        return key, self._message(records.by_name(name).read(value, version)).write(version)

    def _message(self, message: M) -> M:
        return self._struct(message, schema_files.schema_of(type(message)).root)

    def _struct(self, struct: S, spec: StructSpec) -> S:
        found = copy(struct)
        found.unknown_tagged_fields = []
        for field in spec.fields:
            if field.struct is not None or field.kind in _REPLACED:
                value = getattr(struct, field.attribute)
                is_list = isinstance(value, list)
                redacted = [self._value(field, each) for each in value] if is_list else self._value(field, value)
                setattr(found, field.attribute, redacted)
        return found

    def _value(self, field: FieldSpec, value: Any) -> Any:
        if value is None:
            return None
        if field.struct is not None:
            return self._struct(value, field.struct)
        if field.attribute in _PRINCIPALS:
            return ":".join(map(self.text, value.split(":", 1)))
        return self.text(value) if field.kind == "string" else asterisks(value)

    def _config(self, record: ConfigRecord) -> ConfigRecord:
        key = config_keys.keys(record.resource_type).get(record.name)
        is_node = record.resource_type in _NODES and re.fullmatch(_ID, record.resource_name)
        return ConfigRecord(
            resource_type=record.resource_type,
            resource_name=record.resource_name if is_node else self.text(record.resource_name),
            name=self.text(record.name) if key is None else key.name,
            value=None if record.value is None else self._config_value(key, record.value),
        )

    def _config_value(self, key: ConfigKey | None, value: str) -> str:
        if key is None or is_sensitive(key.name):
            return HIDDEN_VALUE
        if key.type in _PARSED:
            try:
                parsed = config_values.parse(key._replace(validator=None), value)
            except ApiError:
                return HIDDEN_VALUE
            return str(parsed).lower() if isinstance(parsed, bool) else config_values.shown(parsed)
        parts, allowed = split_trimmed(value), (key.validator or {}).get("values") or []
        if all(part in allowed for part in parts):
            return ",".join(parts)
        return value if key.name.endswith(_REPLICAS_KEY) and _REPLICAS.fullmatch(value) else self.text(value)

    def _hash(self, text: str, part: str) -> str:
        """Return the hash of a text, of which the part is what `reveal` shows."""
        number = int.from_bytes(hmac.digest(self._key, text.encode("utf-8", "surrogatepass"), "sha256"))
        pairs = []
        for _ in range(_HASH_PAIRS):
            number, pair = divmod(number, len(_PAIRS))
            pairs.append(_PAIRS[pair])
        found = "".join(pairs)
        if self.originals.setdefault(found, part) != part:
            raise ValueError(f"two texts have the same hash with this key, {found}: take another one")
        return found


def redacted(history: History, redactor: Redactor) -> History:
    """Return a redacted copy of a history. SourceError for a batch that cannot be read, ValueError as `Redactor`."""
    snapshot = history.snapshot
    try:
        data = b"" if snapshot is None else snapshot.read(0, snapshot.size)
        whole = [StoredBatch(header, data) for header in record_batch.read_headers(data)]
        for batch in (*whole, *history.batches):
            redactor.add_prefixes(_acl_prefixes(batch))
        if snapshot is not None:
            snapshot = Snapshot(snapshot.id, b"".join(redactor.batch(data, header) for header, data in whole))
        batches = [_stored(redactor.batch(data, header)) for header, data in history.batches]
    except WireError as error:
        raise SourceError(f"{history.source}: {error}") from error
    kept = {key: value for key, value in history.directory.items() if key in ("node.id", "directory.id")}
    cluster_id = redactor.text(history.cluster_id or _NO_CLUSTER_ID)
    return replace(history, snapshot=snapshot, batches=batches, cluster_id=cluster_id, directory=kept)


def _stored(data: bytes) -> StoredBatch:
    return StoredBatch(record_batch.read_header(data, 0), data)


def _acl_prefixes(batch: StoredBatch) -> Iterator[str]:
    """Yield the names of resources that are prefixes of others."""
    header, data = batch
    if header.is_control or data.find(_ACL_FRAME, header.position, header.end) < 0:
        return
    for _, value in record_batch.read_batch(data, header).records:
        with suppress(WireError):
            record = metadata_log_frame.decode(value or b"").record
            if isinstance(record, AccessControlEntryRecord) and record.pattern_type == PatternType.PREFIXED:
                yield record.resource_name


def read_key(path: Path) -> bytes:
    """Read a key file, without white space at its ends. OSError; ValueError as `Redactor`."""
    key = read_file(path).strip()
    Redactor(key)
    return key
