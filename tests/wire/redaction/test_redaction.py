"""Secrets are hidden in text, JSON and bytes, and nothing else is changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product

from mockraft.wire import messages, metadata_log_frame, record_batch, records, schema_files
from mockraft.wire.connection import write_request, write_response
from mockraft.wire.json_form import to_json
from mockraft.wire.message import Message
from mockraft.wire.messages import alter_configs_request as alter
from mockraft.wire.messages import alter_user_scram_credentials_request as scram
from mockraft.wire.messages import create_topics_request as create
from mockraft.wire.messages import create_topics_response as created
from mockraft.wire.messages import describe_configs_response as described
from mockraft.wire.messages import describe_delegation_token_response as tokens
from mockraft.wire.messages import fetch_response as fetch
from mockraft.wire.messages import fetch_snapshot_response as snapshot
from mockraft.wire.messages import incremental_alter_configs_request as incremental
from mockraft.wire.redaction.messages import (
    masked,
    masked_batches,
    masked_request,
    masked_response,
    may_hold_secrets,
    without_secrets,
)
from mockraft.wire.redaction.secret_fields import (
    FIELDS,
    RECORD_PREFIXES,
    is_secret_path,
    is_sensitive,
    may_hold_records,
)
from mockraft.wire.schema_files import StructSpec

from ...rows import each_row

SECRET = "hunter2-Überpasswort"
RAW = SECRET.encode()
KEY = "ssl.key.password"
METADATA = bytes(15) + b"\1"

SCRAM_RECORD = records.UserScramCredentialRecord(
    name="alice", mechanism=1, salt=RAW, stored_key=RAW, server_key=RAW, iterations=4096
)
CONFIG_RECORD = records.ConfigRecord(resource_type=4, resource_name="1", name=KEY, value=SECRET)
BATCHES = record_batch.encode(
    [
        metadata_log_frame.encode(each, 0)
        for each in (records.TopicRecord(name="orders"), SCRAM_RECORD, CONFIG_RECORD, records.NoOpRecord())
    ],
    base_offset=7,
    leader_epoch=2,
    timestamp_ms=1_000,
)

ALTERATION = incremental.IncrementalAlterConfigsRequest(
    resources=[
        incremental.AlterConfigsResource(
            resource_type=4,
            resource_name="1",
            configs=[
                incremental.AlterableConfig(name=KEY, value=SECRET),
                incremental.AlterableConfig(name="num.io.threads", value="8"),
                incremental.AlterableConfig(name="ssl.keystore.password", value=None),
            ],
        )
    ]
)
INNER_REQUEST = write_request(ALTERATION, 1, 5, "admin")[4:]
TOKEN = messages.CreateDelegationTokenResponse(hmac=RAW, token_id="shown")
INNER_RESPONSE = write_response(TOKEN.write(3), 5, 1)[4:]

HOLDERS: tuple[Message, ...] = (
    ALTERATION,
    SCRAM_RECORD,
    CONFIG_RECORD,
    TOKEN,
    alter.AlterConfigsRequest(
        resources=[
            alter.AlterConfigsResource(
                resource_type=4, resource_name="1", configs=[alter.AlterableConfig(name=KEY, value=SECRET)]
            )
        ]
    ),
    scram.AlterUserScramCredentialsRequest(
        upsertions=[scram.ScramCredentialUpsertion(name="alice", mechanism=1, salt=RAW, salted_password=RAW)]
    ),
    create.CreateTopicsRequest(
        topics=[create.CreatableTopic(name="t", configs=[create.CreatableTopicConfig(name="no.key", value=SECRET)])]
    ),
    created.CreateTopicsResponse(
        topics=[
            created.CreatableTopicResult(
                name="t", configs=[created.CreatableTopicConfigs(name="no.such.key", value=SECRET)]
            )
        ]
    ),
    described.DescribeConfigsResponse(
        results=[
            described.DescribeConfigsResult(
                resource_name="1",
                configs=[
                    described.DescribeConfigsResourceResult(
                        name=KEY, value=SECRET, synonyms=[described.DescribeConfigsSynonym(name=KEY, value=SECRET)]
                    )
                ],
            )
        ]
    ),
    tokens.DescribeDelegationTokenResponse(tokens=[tokens.DescribedDelegationToken(hmac=RAW)]),
    messages.ExpireDelegationTokenRequest(hmac=RAW),
    messages.RenewDelegationTokenRequest(hmac=RAW),
    messages.SaslAuthenticateRequest(auth_bytes=RAW),
    messages.SaslAuthenticateResponse(auth_bytes=RAW),
    messages.EnvelopeRequest(request_data=INNER_REQUEST, client_host_address=b"\x7f\0\0\1"),
    messages.EnvelopeResponse(response_data=INNER_RESPONSE),
    fetch.FetchResponse(
        responses=[fetch.FetchableTopicResponse(topic_id=METADATA, partitions=[fetch.PartitionData(records=BATCHES)])]
    ),
    snapshot.FetchSnapshotResponse(
        topics=[
            snapshot.TopicSnapshot(
                name="__cluster_metadata",
                partitions=[
                    snapshot.PartitionSnapshot(position=0, unaligned_records=BATCHES),
                    snapshot.PartitionSnapshot(index=1, position=99, unaligned_records=RAW),
                ],
            )
        ]
    ),
)
each_holder = each_row("message", HOLDERS)


def written(message: Message) -> list[tuple[int, bytes]]:
    """Return each version that can express the secret, and the bytes."""
    first = {fetch.FetchResponse: 13, created.CreateTopicsResponse: 5}.get(type(message), message.min_version)
    found = [(version, message.write(version)) for version in range(first, message.max_version + 1)]
    assert all(RAW in data for _, data in found)
    return found


@each_holder
def test_masks_in_text_json_and_bytes_of_the_same_length(message: Message) -> None:
    for version, data in written(message):
        hidden = masked(message).write(version)
        assert RAW not in hidden
        assert len(hidden) == len(data)
        type(message).read(hidden, version)
        text = json.dumps(to_json(masked(message), version), ensure_ascii=False)
        assert SECRET not in text
    assert SECRET not in repr(message)
    assert repr(RAW)[2:-1] not in repr(message)


def test_leaves_what_is_no_secret() -> None:
    configs = masked(ALTERATION).resources[0].configs
    assert [each.value for each in configs[1:]] == ["8", None]
    assert "value='8'" in repr(ALTERATION)
    assert "value=[hidden]" in repr(ALTERATION)
    assert ALTERATION.resources[0].configs[0].value == SECRET
    tree = to_json(masked(ALTERATION), 1)
    assert without_secrets(to_json(ALTERATION, 1)) == tree
    assert '"value": "[hidden]"' in json.dumps(tree)
    heartbeat = messages.BrokerHeartbeatRequest(broker_id=1)
    assert masked(heartbeat) is heartbeat


def test_masks_the_request_and_the_response_in_an_envelope() -> None:
    envelope = write_request(messages.EnvelopeRequest(request_data=INNER_REQUEST), 0, 9, "1")[4:]
    hidden = masked_request(envelope)
    assert len(hidden) == len(envelope)
    assert RAW not in hidden
    assert b"num.io.threads\0\x028" in hidden
    asked = write_request(messages.CreateDelegationTokenRequest(), 3, 5, "admin")[4:]
    envelope = write_request(messages.EnvelopeRequest(request_data=asked), 0, 9, "1")[4:]
    answer = write_response(messages.EnvelopeResponse(response_data=INNER_RESPONSE).write(0), 9, 1)[4:]
    hidden = masked_response(answer, 58, 0, request_frame=envelope)
    assert len(hidden) == len(answer)
    assert RAW not in hidden
    assert b"shown" in hidden
    assert b"shown" not in masked_response(answer, 58, 0)


def test_masked_batches_can_be_read() -> None:
    hidden = masked_batches(BATCHES + BATCHES)
    found = [
        metadata_log_frame.decode(value or b"").record
        for batch in record_batch.read_batches(hidden)
        for _, value in batch.records
    ]
    assert [type(each).__name__ for each in found[:4]] == [
        "TopicRecord",
        "UserScramCredentialRecord",
        "ConfigRecord",
        "NoOpRecord",
    ]
    assert (found[1].name, found[1].iterations, found[2].name) == ("alice", 4096, KEY)
    assert masked_batches(hidden) == hidden
    topic = metadata_log_frame.encode(records.TopicRecord(name="orders"), 0)
    plain = record_batch.encode([topic], base_offset=0, leader_epoch=1, timestamp_ms=1)
    assert masked_batches(plain) is plain


@each_row("cut", [1, 40, 70, len(BATCHES) - 1])
def test_masks_the_part_of_a_batch(cut: int) -> None:
    whole = masked_batches(BATCHES)
    assert masked_batches(BATCHES + BATCHES[:cut]) == whole + b"*" * cut
    broken = bytes((*BATCHES[:30], BATCHES[30] ^ 1, *BATCHES[31:]))
    assert masked_batches(BATCHES + broken) == whole + b"*" * len(broken)


@each_holder
def test_masks_a_body_that_cannot_be_read(message: Message) -> None:
    if message.__class__.__name__.endswith("Record"):
        return
    version, is_request = message.max_version, message.__class__.__name__.endswith("Request")
    if is_request:
        frame = write_request(message, version, 1, "c")[4:] + b"!"
        hidden = masked_request(frame)
    else:
        header = messages.response_header_version(message.api_key, version)
        frame = write_response(message.write(version), 1, header)[4:] + b"!"
        hidden = masked_response(frame, message.api_key, version)
    assert RAW not in hidden
    assert len(hidden) == len(frame)


@each_row("frame", [b"", b"\0", b"\0alice\0hunter2", b"\0A\0hunter2", b"GET / HTTP/1.1", b"\x7f\xff\0\0"])
def test_masks_a_frame_that_may_be_anything(frame: bytes) -> None:
    assert masked_request(frame) == b"*" * len(frame)


def test_shows_a_frame_of_an_api_without_secrets() -> None:
    frame = b"\0\x3f\0\x1f\0\0\0\1"
    assert masked_request(frame) == frame


def test_values_of_passwords_and_unknown_configs_are_sensitive() -> None:
    assert all(map(is_sensitive, (KEY, "sasl.jaas.config", "no.such.key", "listener.name.a.ssl.key.password", "")))
    assert not any(map(is_sensitive, ("retention.ms", "num.io.threads", "metrics", "consumer.session.timeout.ms")))


def test_paths_of_secrets() -> None:
    assert is_secret_path("upsertions[].salted_password")
    assert is_secret_path("resources[].configs[].value")
    assert is_secret_path("resources.configs.value", [KEY])
    assert not is_secret_path("resources[0].configs[1].value", ["retention.ms"])
    assert not is_secret_path("entries[].ops[].value")


def test_every_record_that_may_hold_secrets_is_found_by_its_frame() -> None:
    kinds = [kind for kind in map(records.by_name, records.TYPES.values()) if may_hold_secrets(kind)]
    prefixes = {
        metadata_log_frame.prefix(kind.api_key, version)
        for kind in kinds
        for version in range(kind.min_version, kind.max_version + 1)
    }
    assert prefixes == set(RECORD_PREFIXES)


@each_row("size", [1, 20, 60, 100, 9_000, 30_000])
def test_records_with_secrets_are_found_whatever_their_length(size: int) -> None:
    change = records.PartitionChangeRecord(isr=[1, 2, 3], leader=2)
    config = records.ConfigRecord(resource_type=4, resource_name="1", name=KEY, value="x" * size)
    values = [metadata_log_frame.encode(record, 0) for record in (change, config)]
    assert may_hold_records(record_batch.encode(values, base_offset=1, leader_epoch=1, timestamp_ms=1))
    assert may_hold_records(values[1])


def test_new_leader_in_a_record_is_no_secret() -> None:
    change = metadata_log_frame.encode(records.PartitionChangeRecord(isr=[1, 2, 3], leader=2), 0)
    assert any(prefix in change for prefix in RECORD_PREFIXES)
    assert not may_hold_records(record_batch.encode([change], base_offset=1, leader_epoch=1, timestamp_ms=1))


def test_a_record_starts_behind_the_end_of_a_length() -> None:
    befores = [b"", *(bytes(some) for size in (1, 2) for some in product(range(256), repeat=size))]
    for before in befores:
        earlier, last = (b"\0\6", b"\0" + before, before)[len(before)]
        ends = last < 0x80 and (earlier > 0x7F or (last > 5 and last % 2 == 0))
        assert [may_hold_records(before + prefix) for prefix in RECORD_PREFIXES] == [ends, ends]


def test_every_field_with_the_name_of_a_secret_is_in_the_table() -> None:
    words = ("salt", "password", "hmac", "secret", "storedkey", "serverkey", "authbytes", "credential")
    found = {
        (struct.name, field.attribute)
        for name in schema_files.names()
        for struct in structs(schema_files.schema(name).root)
        for field in struct.fields
        if field.kind in ("bytes", "string") and any(word in field.name.lower() for word in words)
    }
    assert found == {(struct, field) for struct, fields in FIELDS.items() for field in fields}


def structs(spec: StructSpec) -> Iterator[StructSpec]:
    """Yield a struct and those in its fields."""
    yield spec
    for field in spec.fields:
        if field.struct is not None:
            yield from structs(field.struct)
