"""The table of secrets: passwords, keys, tokens and the values of sensitive configs.

Source: RecordRedactor, KafkaConfigSchema.isSensitive, KafkaConfig.loggableValue, and the `toString` methods of the
requests and responses below. Kafka's request log (RequestConvertToJson) has salts, salted passwords and HMACs all the
same, and kafka-dump-log shows everything; here they are hidden.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

from mockraft.wire import spec_files
from mockraft.wire.names import snake
from mockraft.wire.redaction.masks import HIDDEN

FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "CreateDelegationTokenResponse": ("hmac",),
    "DescribedDelegationToken": ("hmac",),
    "ExpireDelegationTokenRequest": ("hmac",),
    "RenewDelegationTokenRequest": ("hmac",),
    "SaslAuthenticateRequest": ("auth_bytes",),
    # A salt and a server's signature are enough to try passwords without the server.
    "SaslAuthenticateResponse": ("auth_bytes",),
    "ScramCredentialUpsertion": ("salt", "salted_password"),
    "UserScramCredentialRecord": ("salt", "stored_key", "server_key"),
}
"""Secret fields by struct."""

CONFIGS: Final = frozenset(
    (
        "AlterableConfig",
        "ConfigRecord",
        "CreatableTopicConfig",
        "CreatableTopicConfigs",
        "DescribeConfigsResourceResult",
        "DescribeConfigsSynonym",
    )
)
"""Structs of a config's name and value; the value is secret if the config is sensitive."""

RECORD_PREFIXES: Final = (b"\1\4\0", b"\1\x0b\0")
"""First bytes of framed metadata records that may hold secrets: ConfigRecord, UserScramCredentialRecord."""

# The byte before may end a value's length: a zigzag varint, even and not below 6. A new leader in a
# PartitionChangeRecord (tag 1, 4 bytes) has the bytes of a ConfigRecord's prefix, but rarely this. Conditions on bytes
# before come last, because the search for a first byte is fast.
_EVEN: Final = re.escape(bytes(range(6, 0x80, 2)))
_RECORD_START: Final = re.compile(
    b"\1[\4\x0b]\0(?:(?<=[" + _EVEN + b"]...)|(?<=[\x80-\xff][\0-\x7f]...)|(?<=\\A...))", re.DOTALL
)
_INSIDE: Final = ("request_data", "response_data", "unaligned_records")


def secret_fields(struct: object) -> tuple[str, ...]:
    """Return the names of a struct's fields with secrets."""
    name = type(struct).__name__
    if name in CONFIGS:
        return ("value",) if is_sensitive(getattr(struct, "name", "")) else ()
    return FIELDS.get(name, ())


def is_hidden(struct: object, field: str, value: object) -> bool:
    """Return True if the text of a struct has `[hidden]` for a field: a secret, or bytes with a message inside."""
    if not value or not isinstance(value, bytes | str):
        return False
    if field == "records" and isinstance(value, bytes):
        return may_hold_records(value)
    return field in secret_fields(struct) or field in _INSIDE


def may_hold_records(data: bytes) -> bool:
    """Return True if bytes may have metadata records with secrets."""
    return _RECORD_START.search(data) is not None


def is_sensitive(config: str) -> bool:
    """Return True if the values of a config are secret: those of type PASSWORD, and those of unknown keys."""
    return config not in _plain_configs()


def is_secret_path(path: str, configs: Iterable[object] = ()) -> bool:
    """Return True if the field at a path (`upsertions[].salt`) may be secret.

    The value of a config may be, unless `configs`, the names that its config may have, contain that of a plain one.
    """
    steps = [snake(step.partition("[")[0]) for step in path.split(".")]
    if steps[-1] == "value" and "configs" in steps:
        return not any(isinstance(name, str) and not is_sensitive(name) for name in configs)
    return any(steps[-1] in names for names in FIELDS.values())


def masked_configs(values: Mapping[str, str]) -> dict[str, str]:
    """Return the values of configs by name, with `[hidden]` for those of sensitive ones."""
    return {name: HIDDEN if is_sensitive(name) else value for name, value in values.items()}


@cache
def _plain_configs() -> frozenset[str]:
    """Return the known keys that are not passwords; a key means the same for every type of resource that has it."""
    versions = spec_files.shipped_versions()
    tables = [spec_files.table(versions[at::-1], "configs.json") for at in range(len(versions))]
    kinds = ("topic", "broker", "group", "client_metrics")
    rows = [row for table in tables for kind in kinds for row in table[kind]]
    return frozenset(row["name"] for row in rows) - {row["name"] for row in rows if row["type"] == "PASSWORD"}
