"""Redacted copies open as the original does; `test_redaction_adversary` looks for what is left in them."""

from pathlib import Path
from typing import Any

import pytest
from mockraft import Controller
from mockraft.twin import SourceError, read_history
from mockraft.twin.redaction import HIDDEN_VALUE, Redactor, redacted
from mockraft.twin.state import write_directory
from mockraft.wire import record_batch, topic_names
from mockraft.wire.message import Message
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.access_control_entry_record import AccessControlEntryRecord
from mockraft.wire.records.client_quota_record import ClientQuotaRecord, EntityData
from mockraft.wire.records.config_record import ConfigRecord
from mockraft.wire.records.delegation_token_record import DelegationTokenRecord
from mockraft.wire.records.leader_change_message import LeaderChangeMessage, Voter
from mockraft.wire.records.register_broker_record import BrokerEndpoint, BrokerFeature, RegisterBrokerRecord
from mockraft.wire.records.user_scram_credential_record import UserScramCredentialRecord

from ..cli.cli import invoke, one_line
from ..rows import each_row
from .adversary import found_in

KEY = b"a key that is long enough"
WORDS = (
    *("acmebank", "ledger", "invoices", "alice", "wonderland", "kafkahost", "frankfurt", "reporting", "topsecret"),
    *("masterpass", "saltsaltsalt", "storedstored", "serverserver", "tokentoken", "renewer", "customkey", "lineage"),
    "mobileapp",
)
CLUSTER_ID = "acmebank-production-01"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A controller's directory with a word in every field that can have one, once in the log and once in a snapshot."""
    path = tmp_path_factory.mktemp("source") / "data"
    with Controller.sync(
        data_dir=path,
        cluster_id=CLUSTER_ID,
        clock="virtual",
        # Its own endpoint is in the log, too.
        advertised_host="localhost",
    ) as controller:
        state = controller.state
        broker = controller.start_broker(1, rack="frankfurt-1a")
        assert broker is not None
        state.create_topic("acmebank.ledger-invoices", replicas=[[1]], configs={"retention.ms": "86400000"})
        state.create_topic("__consumer_offsets", replicas=[[1]])
        state.append(given())
        state.snapshot()
        state.create_topic("acmebank.ledger-lineage_v2", replicas=[[1]])
        state.append(given(again=True))
    return path


def given(again: bool = False) -> list[Message]:
    topic = "acmebank.ledger-invoices"
    host = BrokerEndpoint(
        name="EXTERNAL", host="kafkahost-7.frankfurt.acmebank.example", port=9092, security_protocol=0
    )
    numeric = BrokerEndpoint(name="INTERNAL", host="10.20.30.40", port=9093, security_protocol=0)
    features = [BrokerFeature(name="metadata.version", min_supported_version=7, max_supported_version=33)]
    registered = RegisterBrokerRecord(
        broker_id=1007,
        incarnation_id=bytes(range(16)),
        broker_epoch=9,
        end_points=[host, numeric],
        features=features,
        rack="frankfurt-1a",
        log_dirs=[bytes(range(1, 17))],
    )
    acl = AccessControlEntryRecord(
        id=bytes([again] * 16),
        resource_type=2,
        resource_name="acmebank.",
        pattern_type=4,
        principal="User:CN=alice,OU=wonderland",
        host="10.20.30.40",
        operation=3,
        permission_type=3,
    )
    entity = [
        EntityData(entity_type="client-id", entity_name="mobileapp"),
        EntityData(entity_type="user", entity_name="alice"),
    ]
    return [
        registered,
        acl,
        ConfigRecord(resource_type=2, resource_name=topic, name="cleanup.policy", value="compact,delete"),
        ConfigRecord(resource_type=4, resource_name="1007", name="ssl.keystore.password", value="topsecret"),
        ConfigRecord(resource_type=4, resource_name="", name="ssl.keystore.location", value="/etc/acmebank/alice.jks"),
        ConfigRecord(resource_type=4, resource_name="", name="acmebank.customkey", value="masterpass"),
        ConfigRecord(resource_type=32, resource_name="reporting", name="consumer.session.timeout.ms", value="45000"),
        ClientQuotaRecord(entity=entity, key="producer_byte_rate", value=1024.0),
        UserScramCredentialRecord(
            name="alice",
            mechanism=1,
            salt=b"saltsaltsalt",
            stored_key=b"storedstored",
            server_key=b"serverserver",
            iterations=4096,
        ),
        DelegationTokenRecord(
            owner="User:alice", requester="User:alice", renewers=["User:renewer"], token_id="tokentoken"
        ),
    ]


@pytest.fixture
def copy(source: Path, tmp_path: Path) -> Path:
    return write_directory(redacted(read_history(source), Redactor(KEY)), tmp_path / "copy")


def test_the_copy_opens_with_the_same_structure(source: Path, copy: Path) -> None:
    original, hidden = read_history(source), read_history(copy)
    assert hidden.notes == []
    assert [each.header.base_offset for each in hidden.batches] == [
        each.header.base_offset for each in original.batches
    ]
    before, after = original.moment().image, hidden.moment().image
    assert [*after.topics.by_id] == [*before.topics.by_id]
    assert after.features == before.features
    assert after.topics.by_name["__consumer_offsets"].partitions
    broker = after.cluster.brokers[1007]
    assert broker.log_dirs == before.cluster.brokers[1007].log_dirs
    assert [each.port for each in broker.endpoints] == [9092, 9093]
    assert broker.rack == after.cluster.brokers[1].rack != "frankfurt-1a"
    (acl,) = {*after.security.acls.values()}
    names = [name for name in after.topics.by_name if name.startswith(acl.resource_name)]
    assert len(names) == 2
    assert acl.host == broker.endpoints[1].host
    values = {key: value for configs in after.configs.values() for key, value in configs.items()}
    assert (values["retention.ms"], values["cleanup.policy"]) == ("86400000", "compact,delete")
    assert values["ssl.keystore.password"] == "hidden"
    with Controller.sync(twin_of=copy) as twin:
        assert {*names} < {topic.name for topic in twin.state.topics()}
        assert twin.cluster_id == hidden.cluster_id != CLUSTER_ID


def test_a_plan_has_the_same_figures(tmp_path: Path) -> None:
    with Controller.sync(clock="virtual") as controller:
        for broker_id in range(1, 6):
            controller.start_broker(broker_id, rack=f"zone-{broker_id % 2}", log_dirs=())
        for number in range(12):
            partitions = [[1 + (number + each) % 5, 1 + (number + each + 1) % 5] for each in range(1 + number % 3)]
            configs = {"min.insync.replicas": str(1 + number % 2)}
            controller.state.create_topic(f"topic-{number}", replicas=partitions, configs=configs)
        controller.advance(5_000)
        saved = controller.state.save(tmp_path)
    redactor = Redactor(KEY)
    copy = write_directory(redacted(read_history(saved), redactor), tmp_path / "copy")
    figures = []
    for path, rename in ((saved, str), (copy, redactor.text)):
        steps: list[dict[str, Any]] = [
            {"replication_factor": {"topic": rename("topic-3"), "factor": 3}},
            {"drain": [2, 3]},
            {"lose_rack": rename("zone-1")},
        ]
        with Controller.sync(twin_of=path, clock="virtual", twin_brokers="live") as twin:
            outcome = twin.plan(steps)
            topics = [twin.state.topic(rename(f"topic-{number}")) for number in range(12)]
            replicas = [[partition.replicas for partition in topic.partitions] for topic in topics]
        figures.append((replicas, [(each.seconds, each.counts, len(each.answers)) for each in outcome.steps]))
    assert figures[0] == figures[1]


def test_two_runs_with_one_key_agree(source: Path, copy: Path, tmp_path: Path) -> None:
    again = write_directory(redacted(read_history(source), Redactor(KEY)), tmp_path / "again")
    files = sorted(path.relative_to(copy) for path in copy.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(again) for path in again.rglob("*") if path.is_file())
    assert [path for path in files if (copy / path).read_bytes() != (again / path).read_bytes()] == []


def test_another_key_gives_other_names(source: Path) -> None:
    names = [
        {*redacted(read_history(source), Redactor(key)).moment().image.topics.by_name}
        for key in (KEY, b"another" + KEY)
    ]
    assert names[0] & names[1] == {"__consumer_offsets"}


def test_the_snapshot_alone_can_be_redacted(source: Path, tmp_path: Path) -> None:
    checkpoint = max((source / "__cluster_metadata-0").glob("*.checkpoint"))
    copy = write_directory(redacted(read_history(checkpoint), Redactor(KEY)), tmp_path / "copy")
    image = read_history(copy).moment().image
    assert len(image.topics.by_name) == 2
    assert found_in(b"".join(path.read_bytes() for path in copy.rglob("*") if path.is_file()), WORDS) == set()


def test_a_capture_becomes_a_redacted_directory(tmp_path: Path) -> None:
    capture = Path(__file__).parents[1] / "captures" / "controller-4.3.1.pcap"
    copy = write_directory(redacted(read_history(capture), Redactor(KEY)), tmp_path / "copy")
    original, hidden = read_history(capture), read_history(copy)
    assert hidden.end_offset == original.end_offset == 644
    assert len(hidden.moment().image.topics.by_id) == 3


@each_row("text", ["", "*", "kafka-cluster", "__consumer_offsets", "metadata.version", "SASL_SSL", "localhost"])
def test_kafkas_own_texts_stay(text: str) -> None:
    assert Redactor(KEY).text(text) == text


def test_a_name_is_the_same_in_a_principal() -> None:
    acl = AccessControlEntryRecord(principal="User:alice", host="*", resource_name="kafka-cluster")
    redactor = Redactor(KEY)
    found = redactor.record(RecordAt(acl, 0)).record
    assert found == AccessControlEntryRecord(
        principal=f"User:{redactor.text('alice')}", host="*", resource_name="kafka-cluster"
    )


def test_names_begin_with_the_same_prefixes_of_acls() -> None:
    prefixes = ["ac", "acme.", *("x" * length for length in range(1, 249))]
    redactor = Redactor(KEY, prefixes)
    names = ["ac", "acme", "acme.orders", "acme.orders-dlt", "ab", "acme.", "x" * 16, "xy", "x" * 249]
    hidden = {name: redactor.text(name) for name in names}
    for prefix in ("ac", "acme.", "x"):
        with_prefix = {name for name in names if name.startswith(prefix)}
        assert {name for name in names if hidden[name].startswith(redactor.text(prefix))} == with_prefix
    assert [name for name in names if topic_names.reason_invalid(hidden[name])] == []


@each_row(
    ("resource_type", "resource_name", "name", "value", "copied"),
    [
        (2, "t", "leader.replication.throttled.replicas", "0:101,1:102", "0:101,1:102"),
        (2, "t", "leader.replication.throttled.replicas", "0446681800:1", None),
        (2, "t", "retention.ms", " 86400000", "86400000"),
        (2, "t", "retention.ms", "044-668-18-00", HIDDEN_VALUE),
        (2, "t", "cleanup.policy", "compact , delete", "compact,delete"),
        (2, "t", "cleanup.policy", "acme", None),
        (2, "t", "unclean.leader.election.enable", "TRUE", "true"),
        (4, "1007", "ssl.keystore.location", "/etc/acme.jks", None),
        (4, "044-668-18-00", "num.io.threads", "8", "8"),
        (4, "\u0661", "acme.key", "0446681800", HIDDEN_VALUE),
    ],
)
def test_values_of_configs(resource_type: int, resource_name: str, name: str, value: str, copied: str | None) -> None:
    redactor = Redactor(KEY)
    record = ConfigRecord(resource_type=resource_type, resource_name=resource_name, name=name, value=value)
    found = redactor.record(RecordAt(record, 0)).record
    assert found.value == (redactor.text(value) if copied is None else copied)
    assert (found.resource_name == resource_name) == (resource_name == "1007")
    assert (found.name == name) == (name != "acme.key")


def test_unknown_fields_of_control_records_are_dropped(source: Path) -> None:
    leader = LeaderChangeMessage(leader_id=3000, voters=[Voter(voter_id=3000)])
    leader.unknown_tagged_fields = [(9, b"acmebank")]
    values = [(record_batch.LEADER_CHANGE, leader.write(0)), (99, b"acmebank")]
    pairs = [(record_batch.control_key(kind), value) for kind, value in values]
    data = record_batch.encode_control(pairs, base_offset=7, leader_epoch=1, timestamp_ms=1)
    redactor = Redactor(KEY)
    hidden = redactor.batch(data, record_batch.read_header(data, 0))
    assert b"acmebank" in data
    assert b"acmebank" not in hidden
    (batch,) = record_batch.read_batches(hidden)
    (_, kept), (_, unknown) = batch.records
    assert LeaderChangeMessage.read(kept or b"", 0).voters[0].voter_id == 3000
    assert (unknown, redactor.unknown_records) == (b"", 1)


def test_the_command_writes_and_reveals(source: Path, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_bytes(KEY + b"\n")
    done = invoke("redact", source, "--out", tmp_path / "copy", "--key-file", key)
    assert (done.exit_code, done.output) == (0, "")
    image = read_history(tmp_path / "copy").moment().image
    name = next(name for name in image.topics.by_name if name != "__consumer_offsets")
    text = tmp_path / "ticket.txt"
    text.write_text(f"the leader of {name} is gone\n")
    revealed = invoke("redact", source, "--key-file", key, "--reveal", text)
    assert revealed.output == "the leader of acmebank.ledger-invoices is gone\n"
    assert invoke("redact", source, "--key-file", key, "--reveal", "-", stdin=name).output == "acmebank.ledger-invoices"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((), "say what to do: --out DEST or --reveal FILE"),
        (("--out", "{here}"), "it has files already"),
        (("--out", "{here}/key/below"), "Not a directory"),
        (("--out", "{here}/new", "--key-file", "{here}/short"), "a key of 5 bytes can be guessed: it needs 16"),
        (("--out", "{here}/new", "--key-file", "{here}/none"), "No such file"),
        (("--reveal", "{here}/none"), "No such file"),
    ],
)
def test_wrong_options_are_refused(source: Path, tmp_path: Path, arguments: tuple[str, ...], error: str) -> None:
    (tmp_path / "key").write_bytes(KEY)
    (tmp_path / "short").write_bytes(b"12345")
    result = invoke(
        "redact", source, "--key-file", tmp_path / "key", *(each.format(here=tmp_path) for each in arguments)
    )
    assert result.exit_code == 2
    assert error in one_line(result.output)


def test_a_batch_that_cannot_be_read_is_refused(source: Path) -> None:
    history = read_history(source)
    header, data = history.batches[-1]
    broken = history.batches[-1]._replace(header=header._replace(end=header.end - 1), data=data[:-1])
    with pytest.raises(SourceError, match=r"varint|leaves|bytes"):
        redacted(type(history)(history.source, history.snapshot, [broken]), Redactor(KEY))
