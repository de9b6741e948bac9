"""A copy of a history without names and secrets, safe to attach to a ticket, that opens as the original does.

Each word of a name, principal, host or text becomes a keyed hash (HMAC-SHA256), everywhere the same, so that names that
belong together still do: a topic and the prefix in an ACL, hosts of one domain. Without the key nobody can compute or
try words; with it and the source, `Redactor.reveal` turns them back.

Everything that is text is redacted unless this module lists it: names of features, configs and quotas, and Kafka's own
words. Numbers, UUIDs, ports, epochs and times stay; in texts only numbers of up to two digits that do not follow
another one, so that `broker-12` can be read, and no date, telephone or account number. Secrets are dropped: SCRAM keys
and salts are asterisks, sensitive config values "hidden". Unknown tagged fields are dropped; records of a newer Kafka
become NoOpRecords, unknown control records empty.
"""

from __future__ import annotations

import base64
import hmac
import ipaddress
import re
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mockraft.kafka_configs import config_keys
from mockraft.server.controller.log.segments import StoredBatch
from mockraft.server.controller.log.snapshot import Snapshot
from mockraft.twin.history import History, SourceError
from mockraft.wire import metadata_log_frame, record_batch, records, uuids
from mockraft.wire.errors import WireError
from mockraft.wire.message import Struct, field_names
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.config_record import ConfigRecord
from mockraft.wire.records.no_op_record import NoOpRecord
from mockraft.wire.redaction.messages import masked
from mockraft.wire.redaction.secret_fields import is_sensitive

if TYPE_CHECKING:
    from mockraft.wire.record_batch import BatchHeader

S = TypeVar("S", bound=Struct)

KEY_BYTES_MIN: Final = 16
HIDDEN_VALUE: Final = "hidden"
_TOKEN_CHARACTERS: Final = 10
_NAME_CHARACTERS_MAX: Final = 249
_SHORT_NUMBER: Final = 2

_INTERNAL_NAMES: Final = frozenset(
    ("__consumer_offsets", "__transaction_state", "__share_group_state", "__remote_log_metadata", "kafka-cluster")
)
_KAFKAS_WORDS: Final = frozenset(
    (
        *("User", "ANONYMOUS", "PLAINTEXT", "SSL", "SASL", "CONTROLLER", "BROKER", "INTERNAL", "EXTERNAL", "CLIENT"),
        *("REPLICATION", "CN", "OU", "O", "L", "ST", "C", "DC", "UID"),
    )
)
_KEPT: Final = {
    "FeatureLevelRecord": ("name",),
    "BrokerFeature": ("name",),
    "ControllerFeature": ("name",),
    "EntityData": ("entity_type",),
    "ClientQuotaRecord": ("key",),
}
"""Fields whose texts are Kafka's own, by struct."""

_IPV4: Final = re.compile(
    r"(?<![0-9])(?P<octets>[0-9]{1,3}(?P<between>[._-])[0-9]{1,3}(?:(?P=between)[0-9]{1,3}){2})"
    r"(?P<prefix>/(?:3[0-2]|[12]?[0-9]))?(?![0-9])"
)
"""Also in a host's name, as of Amazon (`ip-10-20-30-40.ec2.internal`) or of a wildcard DNS (`10.20.30.40.nip.io`)."""

_WORD: Final = re.compile(r"[A-Za-z0-9\x80-\U0010ffff]+")
_REPLICA_LISTS: Final = ("replication.throttled.replicas",)
"""Ends of the names of configs with partitions and brokers, as `0:101,1:102`."""
_NODES: Final = (config_keys.BROKER, config_keys.BROKER_LOGGER)
_NUMBERS: Final = frozenset(("INT", "LONG", "SHORT", "DOUBLE", "BOOLEAN"))


class Redactor:
    """Redaction with one key; `originals` are the words so far by their redacted form. `unknown_records` counts."""

    def __init__(self, key: bytes) -> None:
        """Take a key. ValueError for one that could be tried."""
        if len(key) < KEY_BYTES_MIN:
            about = f"a key of {len(key)} bytes can be guessed"
            raise ValueError(f"{about}: it needs {KEY_BYTES_MIN} (mockraft random-uuid)")
        self._key = key
        self.originals: dict[str, str] = {}
        self.unknown_records = 0

    def text(self, text: str) -> str:
        """Return a text with each of its words redacted; Kafka's words and short numbers stay."""
        if text in _INTERNAL_NAMES:
            return text
        if ":" in text and (address := self._address(text)) is not None:
            return address
        parts, end = [], 0
        for match in _IPV4.finditer(text):
            parts += [self._words(text[end : match.start()]), self._address_in(match)]
            end = match.end()
        found = "".join((*parts, self._words(text[end:])))
        return found if len(found) <= _NAME_CHARACTERS_MAX or len(text) > _NAME_CHARACTERS_MAX else self._word(text)

    def cluster_id(self, text: str) -> str:
        """Return another cluster id for a cluster id."""
        drawn = self._hash(text)
        return uuids.text_of(bytes((drawn[0] & 0x7F, *drawn[1:16])))

    def reveal(self, text: str) -> str:
        """Return a text in which the redacted words so far are the original ones."""
        return re.sub(rf"[a-z2-7]{{{_TOKEN_CHARACTERS}}}", lambda match: self.originals.get(match[0], match[0]), text)

    def record(self, at: RecordAt) -> RecordAt:
        """Return a redacted copy of a record."""
        if isinstance(at.record, ConfigRecord):
            return RecordAt(self._config(at.record), at.version)
        return RecordAt(self.struct(masked(at.record)), at.version)

    def struct(self, struct: S) -> S:
        """Return a copy of a struct with redacted texts and no unknown fields."""
        found = copy(struct)
        found.unknown_tagged_fields = []
        kept = _KEPT.get(type(struct).__name__.removeprefix("_"), ())
        for name in field_names(type(struct)):
            if name not in kept and name != "unknown_tagged_fields":
                setattr(found, name, self._value(getattr(struct, name)))
        return found

    def batch(self, data: bytes, header: BatchHeader) -> bytes:
        """Return a redacted batch; offsets, epochs and times stay. WireError if it cannot be read."""
        batch = record_batch.read_batch(data, header)
        change = self._control_value if header.is_control else self._data_value
        return record_batch.with_values(data, header, [change(key, value or b"") for key, value in batch.records])

    def _data_value(self, key: bytes | None, value: bytes) -> bytes:
        if key is not None:
            raise WireError("a metadata record with a key")
        try:
            return metadata_log_frame.encode(*self.record(metadata_log_frame.decode(value)))
        except WireError:
            self.unknown_records += 1
            return metadata_log_frame.encode(NoOpRecord(), 0)

    def _control_value(self, key: bytes | None, value: bytes) -> bytes:
        name = record_batch.CONTROL_RECORDS.get(record_batch.control_type(key))
        version = int.from_bytes(value[:2], signed=True)
        if name is None or version > records.by_name(name).max_version:
            self.unknown_records += 1
            return b""
        return self.struct(records.by_name(name).read(value, version)).write(version)

    def _config(self, record: ConfigRecord) -> ConfigRecord:
        found = copy(record)
        found.unknown_tagged_fields = []
        is_known = record.name in config_keys.keys(record.resource_type)
        found.name = record.name if is_known else self.text(record.name)
        if not (record.resource_type in _NODES and record.resource_name.isdecimal()):
            found.resource_name = self.text(record.resource_name)
        if record.value is not None:
            found.value = self._config_value(record.resource_type, record.name, record.value)
        return found

    def _config_value(self, resource_type: int, name: str, value: str) -> str:
        key = config_keys.keys(resource_type).get(name)
        if key is None or key.is_sensitive or is_sensitive(name):
            return HIDDEN_VALUE
        if key.type in _NUMBERS and re.fullmatch(r"-?[\d.eE+-]{1,25}|true|false", value, re.IGNORECASE):
            return value
        allowed = (key.validator or {}).get("values") or []
        if allowed and all(part.strip() in allowed for part in value.split(",")):
            return value
        if name.endswith(_REPLICA_LISTS) and not value.strip("0123456789:,*"):
            return value
        return self.text(value)

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Struct):
            return self.struct(value)
        if isinstance(value, list):
            return [self._value(each) for each in value]
        return value

    def _words(self, text: str) -> str:
        parts, end, is_after_number = [], 0, False
        for match in _WORD.finditer(text):
            word = match[0]
            is_number = word.isdecimal() and word.isascii()
            stays = word in _KAFKAS_WORDS or (is_number and len(word) <= _SHORT_NUMBER and not is_after_number)
            parts += [text[end : match.start()], word if stays else self._word(word)]
            end, is_after_number = match.end(), is_number
        return "".join((*parts, text[end:]))

    def _word(self, word: str) -> str:
        token = base64.b32encode(self._hash(word)).decode().lower()[:_TOKEN_CHARACTERS]
        if self.originals.setdefault(token, word) != word:
            raise ValueError(f"two words have the same hash with this key, {token}: take another one")
        return token

    def _address_in(self, match: re.Match[str]) -> str:
        """Return another address for four numbers, in their form; the same text for this host and for no address."""
        between, octets = match["between"], (str(int(each)) for each in re.split("[._-]", match["octets"]))
        address = self._address(".".join(octets) + (match["prefix"] or ""))
        return match[0] if address is None else address.replace(".", between)

    def _address(self, text: str) -> str | None:
        """Return another address for an IP address or a range of them; None for any other text, and for this host."""
        try:
            network = ipaddress.ip_network(text, strict=False)
        except ValueError:
            return None
        if network.is_loopback or network.is_unspecified:
            return None if network.version == 4 else text
        size = 4 if network.version == 4 else 16
        first = b"\x0a" if size == 4 else b"\xfd"
        address = int.from_bytes(first + self._hash(text)[1:size])
        found = ipaddress.ip_network((address, network.prefixlen), strict=False)
        return str(found) if "/" in text else str(found.network_address)

    def _hash(self, text: str) -> bytes:
        return hmac.digest(self._key, text.encode("utf-8", "surrogatepass"), "sha256")


def redacted(history: History, redactor: Redactor) -> History:
    """Return a redacted copy of a history. SourceError for a batch that cannot be read, ValueError as `Redactor`."""
    snapshot = history.snapshot
    try:
        if snapshot is not None:
            data = snapshot.read(0, snapshot.size)
            changed = b"".join(redactor.batch(data, header) for header in record_batch.read_headers(data))
            snapshot = Snapshot(snapshot.id, changed)
        batches = [_stored(redactor.batch(data, header)) for header, data in history.batches]
    except WireError as error:
        raise SourceError(f"{history.source}: {error}") from error
    kept = {key: value for key, value in history.directory.items() if key in ("node.id", "directory.id")}
    return replace(
        history, snapshot=snapshot, batches=batches, cluster_id=redactor.cluster_id(history.cluster_id), directory=kept
    )


def _stored(data: bytes) -> StoredBatch:
    return StoredBatch(record_batch.read_header(data, 0), data)


def read_key(path: Path) -> bytes:
    """Read a key file, without white space at its ends. OSError; ValueError as `Redactor`."""
    key = path.read_bytes().strip()
    Redactor(key)
    return key
