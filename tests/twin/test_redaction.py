"""Redacted copies: nothing of the words is left, and they open as the original does."""

import base64
import re
import zlib
from pathlib import Path

import pytest
from mockraft import Controller
from mockraft.twin import SourceError, read_history
from mockraft.twin.redaction import Redactor, redacted
from mockraft.twin.state import write_directory
from mockraft.wire import record_batch, records
from mockraft.wire.message import Message, field_names
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

KEY = b"a key that is long enough"
WORDS = (
    *("acmebank", "ledger", "invoices", "alice", "wonderland", "kafkahost", "frankfurt", "reporting", "topsecret"),
    *("masterpass", "saltsaltsalt", "storedstored", "serverserver", "tokentoken", "renewer", "customkey", "lineage"),
    "mobileapp",
)
SECRETS = ("topsecret", "masterpass", "saltsaltsalt", "storedstored", "serverserver", "tokentoken")
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


def forms_of(word: str) -> list[bytes]:
    """A word as text, in UTF-16, as hex and as base64 at each of its three places."""
    data = word.encode()
    encoded = [base64.b64encode(b"\0" * place + data)[4 if place else 0 : -4] for place in range(3)]
    return [
        data,
        word.upper().encode(),
        word.encode("utf-16-le"),
        data.hex().encode(),
        *(each for each in encoded if each),
    ]


def found_in(data: bytes) -> set[str]:
    return {word for word in (*WORDS, CLUSTER_ID) for form in forms_of(word) if form in data}


def unpacked(data: bytes) -> bytes:
    """Everything in the bytes that is deflated."""
    parts = []
    for start in range(len(data) - 2):
        try:
            parts.append(
                zlib.decompressobj(15 if data[start] == 0x78 else -15).decompress(data[start : start + 4096], 1 << 16)
            )
        except zlib.error:
            continue
    return b"".join(parts)


def test_the_source_has_all_words(source: Path) -> None:
    data = b"".join(path.read_bytes() for path in source.rglob("*") if path.is_file())
    assert {word for word in WORDS if word.encode() in data} == {*WORDS}


def test_nothing_of_the_words_is_left(copy: Path) -> None:
    for path in copy.rglob("*"):
        assert found_in(str(path.relative_to(copy)).encode()) == set()
        if path.is_file():
            data = path.read_bytes()
            assert found_in(data) == set()
            assert found_in(unpacked(data)) == set()


def test_the_search_finds_words() -> None:
    assert found_in(base64.b64encode(b"xxalicexx")) == found_in(unpacked(zlib.compress(b"is alice here"))) == {"alice"}


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
    assert re.fullmatch(r"[a-z2-7]{10}-7(\.[a-z2-7]{10}){3}", broker.endpoints[0].host)
    assert re.fullmatch(r"10\.\d+\.\d+\.\d+", broker.endpoints[1].host)
    (acl,) = {*after.security.acls.values()}
    names = [name for name in after.topics.by_name if name.startswith(acl.resource_name)]
    assert len(names) == 2
    assert acl.principal.startswith("User:CN=")
    assert acl.host == broker.endpoints[1].host
    values = {key: value for configs in after.configs.values() for key, value in configs.items()}
    assert (values["retention.ms"], values["cleanup.policy"]) == ("86400000", "compact,delete")
    assert values["ssl.keystore.password"] == "hidden"
    with Controller.sync(twin_of=copy) as twin:
        assert {*names} < {topic.name for topic in twin.state.topics()}
        assert twin.cluster_id == hidden.cluster_id != CLUSTER_ID


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
    assert found_in(b"".join(path.read_bytes() for path in copy.rglob("*") if path.is_file())) == set()


def test_a_capture_becomes_a_redacted_directory(tmp_path: Path) -> None:
    capture = Path(__file__).parents[1] / "captures" / "controller-4.3.1.pcap"
    copy = write_directory(redacted(read_history(capture), Redactor(KEY)), tmp_path / "copy")
    original, hidden = read_history(capture), read_history(copy)
    assert hidden.end_offset == original.end_offset == 644
    assert len(hidden.moment().image.topics.by_id) == 3


@each_row("name", [name for name in records.NAMES if records.by_name(name).api_key >= 0])
def test_every_text_of_every_record_is_redacted_or_listed(name: str) -> None:
    cls = records.by_name(name)
    record = cls()
    texts = [each for each in field_names(cls) if isinstance(getattr(record, each), str)]
    for each in texts:
        setattr(record, each, "acmebank")
    redactor = Redactor(KEY)
    found = redactor.record(RecordAt(record, cls.max_version)).record
    kept = {each for each in texts if getattr(found, each) == "acmebank"}
    assert kept == {"FeatureLevelRecord": {"name"}, "ClientQuotaRecord": {"key"}}.get(name, set())


def test_an_address_is_the_same_one_in_a_hosts_name() -> None:
    redactor = Redactor(KEY)
    assert redactor.text("ip-192-168-1-7").partition("-")[2] == redactor.text("192.168.1.7").replace(".", "-")


@each_row(
    ("text", "pattern"),
    [
        ("", ""),
        ("*", r"\*"),
        ("User:ANONYMOUS", "User:ANONYMOUS"),
        ("kafka-cluster", "kafka-cluster"),
        ("127.0.0.1", r"127\.0\.0\.1"),
        ("::1", "::1"),
        ("fe80::1234", r"fd[0-9a-f:]+"),
        ("192.168.0.0/16", r"10\.\d+\.0\.0/16"),
        ("192.168.0.0/33", r"10\.\d+\.\d+\.\d+/33"),
        ("192.168.001.007", r"10\.\d+\.\d+\.\d+"),
        ("ip-192-168-1-7.ec2.internal", r"[a-z2-7]{10}-10-\d+-\d+-\d+(\.[a-z2-7]{10}){2}"),
        ("192.168.1.7.nip.io", r"10\.\d+\.\d+\.\d+(\.[a-z2-7]{10}){2}"),
        ("192.168.1.7.", r"10\.\d+\.\d+\.\d+\."),
        ("1.2.3", r"1\.[a-z2-7]{10}\.[a-z2-7]{10}"),
        ("broker-12.rack-3", r"[a-z2-7]{10}-12\.[a-z2-7]{10}-3"),
        ("broker-101", "[a-z2-7]{10}-[a-z2-7]{10}"),
        ("123-45-6789", "[a-z2-7]{10}-[a-z2-7]{10}-[a-z2-7]{10}"),
        ("2026-11-26", "[a-z2-7]{10}-[a-z2-7]{10}-[a-z2-7]{10}"),
        ("account 12345678", r"[a-z2-7]{10} [a-z2-7]{10}"),
        ("größe", "[a-z2-7]{10}"),
        ("हिन्दी", "[a-z2-7]{10}"),
        ("-".join(["word"] * 50), "[a-z2-7]{10}"),
    ],
)
def test_texts(text: str, pattern: str) -> None:
    assert re.fullmatch(pattern, Redactor(KEY).text(text))


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


def test_numbers_of_replicas_in_a_config_stay() -> None:
    throttled = ConfigRecord(
        resource_type=2, resource_name="t", name="leader.replication.throttled.replicas", value="0:101,1:102"
    )
    assert Redactor(KEY).record(RecordAt(throttled, 0)).record.value == "0:101,1:102"


def test_the_command_writes_and_reveals(source: Path, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_bytes(KEY + b"\n")
    done = invoke("redact", source, "--out", tmp_path / "copy", "--key-file", key)
    assert (done.exit_code, done.output) == (0, "")
    image = read_history(tmp_path / "copy").moment().image
    (name,) = [name for name in image.topics.by_name if "-" in name and "_" not in name]
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
