"""The voters of the quorum and their records (Kafka's VoterSet, KRaftControlRecordStateMachine; KIP-853).

At kraft.version 0 the voters are configuration and their directory ids unknown; from 1 on they are records, which are
effective from the moment they are in the log, committed or not.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mockraft.releases import KRAFT_VERSION, Behaviour, present
from mockraft.wire import record_batch, uuids
from mockraft.wire.record_batch import Batch
from mockraft.wire.records.k_raft_version_record import KRaftVersionRecord
from mockraft.wire.records.voters_record import Endpoint as RecordEndpoint
from mockraft.wire.records.voters_record import KRaftVersionFeature, Voter, VotersRecord

PARTITION = 0

NO_DIRECTORY_ID = bytes(16)


class ReplicaKey(NamedTuple):
    """A replica of the log: node id and directory id (zero if unknown)."""

    id: int
    directory_id: bytes

    def __str__(self) -> str:
        known = self.directory_id != NO_DIRECTORY_ID
        return self._text(uuids.text_of(self.directory_id) if known else "<undefined>")

    def as_optional(self) -> str:
        """Return the key as texts of Kafka before 4.0 have it."""
        known = self.directory_id != NO_DIRECTORY_ID
        return self._text(f"Optional[{uuids.text_of(self.directory_id)}]" if known else "Optional.empty")

    def _text(self, directory: str) -> str:
        return f"ReplicaKey(id={self.id}, directoryId={directory})"


class ElectionState(NamedTuple):
    """Persisted state of an epoch: its leader, and this node's vote in it."""

    epoch: int = 0
    leader_id: int | None = None
    voted: ReplicaKey | None = None


KRAFT_VERSION_MAX = 1
BEFORE_THE_LOG = -1
"""Offset of voters that are not from the log."""


class VoterEndpoint(NamedTuple):
    """Address of a node, with the name of the listener."""

    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class VoterNode:
    """One voter: replica, endpoints, and supported kraft.version levels."""

    key: ReplicaKey
    endpoints: tuple[VoterEndpoint, ...]
    kraft_version_min: int = 0
    kraft_version_max: int = KRAFT_VERSION_MAX

    def is_voter(self, key: ReplicaKey) -> bool:
        """Return True if `key` is this voter; only the id counts if this voter's directory is unknown."""
        return self.key.id == key.id and self.key.directory_id in (NO_DIRECTORY_ID, key.directory_id)

    def endpoint(self, listener_name: str) -> VoterEndpoint | None:
        """Return its address on that listener."""
        return next((found for found in self.endpoints if found.name == listener_name), None)


class VoterSet:
    """Voters by id, in the order of their ids. Immutable: changes return a new set."""

    __slots__ = ("nodes",)

    def __init__(self, nodes: Iterable[VoterNode] = ()) -> None:
        self.nodes = {node.key.id: node for node in sorted(nodes, key=lambda node: node.key.id)}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VoterSet) and self.nodes == other.nodes

    def __hash__(self) -> int:
        return hash(tuple(self.nodes.values()))

    def __repr__(self) -> str:
        return f"VoterSet({list(self.nodes.values())})"

    def is_voter(self, key: ReplicaKey) -> bool:
        """Return True if the replica is a voter."""
        node = self.nodes.get(key.id)
        return node is not None and node.is_voter(key)

    def is_only_voter(self, key: ReplicaKey) -> bool:
        """Return True if the replica, directory id included, is a voter and there is no other."""
        return len(self.nodes) == 1 and self.is_voter(key)

    def endpoint(self, voter_id: int, listener_name: str) -> VoterEndpoint | None:
        """Return the address of a voter."""
        node = self.nodes.get(voter_id)
        return node.endpoint(listener_name) if node else None

    def needs_update(self, node: VoterNode) -> bool:
        """Return True if `node` is a voter whose entry here differs."""
        return self.is_voter(node.key) and self.nodes[node.key.id] != node

    def updated(self, node: VoterNode, *, ignore_directory_id: bool = False) -> VoterSet | None:
        """Return the set with a voter's entry replaced; None if it is not a voter."""
        if not (node.key.id in self.nodes if ignore_directory_id else self.is_voter(node.key)):
            return None
        return VoterSet({**self.nodes, node.key.id: node}.values())

    def added(self, node: VoterNode) -> VoterSet | None:
        """Return the set with one voter more; None if its id is a voter already."""
        return None if node.key.id in self.nodes else VoterSet([*self.nodes.values(), node])

    def removed(self, key: ReplicaKey) -> VoterSet | None:
        """Return the set without a voter; None if it is not one, or the last one."""
        node = self.nodes.get(key.id)
        if node is None or node.key != key or len(self.nodes) == 1:
            return None
        return VoterSet(other for other in self.nodes.values() if other is not node)

    def keys_text(self, shown: Callable[[ReplicaKey], str] = str) -> str:
        """Return the voters as in Kafka's messages."""
        return f"[{', '.join(shown(node.key) for node in self.nodes.values())}]"

    def as_record(self) -> VotersRecord:
        """Return the voters as a VotersRecord (KIP-853)."""
        return VotersRecord(
            version=0,
            voters=[
                Voter(
                    voter_id=node.key.id,
                    voter_directory_id=node.key.directory_id,
                    endpoints=[RecordEndpoint(name=name, host=host, port=port) for name, host, port in node.endpoints],
                    k_raft_version_feature=KRaftVersionFeature(
                        min_supported_version=node.kraft_version_min, max_supported_version=node.kraft_version_max
                    ),
                )
                for node in self.nodes.values()
            ],
        )

    @classmethod
    def from_record(cls, record: VotersRecord) -> VoterSet:
        """Return the voters of a VotersRecord."""
        return cls(
            VoterNode(
                ReplicaKey(voter.voter_id, voter.voter_directory_id),
                tuple(VoterEndpoint(found.name, found.host, found.port) for found in voter.endpoints),
                voter.k_raft_version_feature.min_supported_version,
                voter.k_raft_version_feature.max_supported_version,
            )
            for voter in record.voters
        )


def read_voters(text: str, listener_name: str) -> VoterSet:
    """Parse `controller.quorum.voters`: `ID@HOST:PORT,…`. ValueError names what is wrong.

    With `:DIRECTORY_ID` at the end of each, `kafka-storage format --initial-controllers`.
    """
    nodes = []
    for part in text.split(","):
        voter_id, at, address = part.strip().partition("@")
        host, port, directory = _split_address(address)
        if not (at and host and voter_id.isdigit() and port):
            raise ValueError(f"{part.strip()!r} is not a voter: give ID@HOST:PORT or ID@HOST:PORT:DIRECTORY_ID")
        directory_id = uuids.read_text(directory) if directory else NO_DIRECTORY_ID
        key = ReplicaKey(int(voter_id), directory_id)
        versions = (0, KRAFT_VERSION_MAX) if directory else (0, 0)
        nodes.append(VoterNode(key, (VoterEndpoint(listener_name, host, port),), *versions))
    if len({node.key.id for node in nodes}) < len(nodes):
        raise ValueError(f"{text!r} names a voter twice")
    return VoterSet(nodes)


def read_addresses(text: str) -> list[tuple[str, int]]:
    """Parse `controller.quorum.bootstrap.servers`: `HOST:PORT,…`. ValueError names what is wrong."""
    found = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        host, port, rest = _split_address(part)
        if not (host and port) or rest:
            raise ValueError(f"{part!r} is not an address: give HOST:PORT")
        found.append((host, port))
    return found


def _split_address(text: str) -> tuple[str, int, str]:
    """Return host, port (0 if invalid) and the rest; an IPv6 host is in brackets."""
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        rest = rest.removeprefix(":")
    else:
        host, _, rest = text.partition(":")
    port, _, rest = rest.partition(":")
    return host, int(port) if port.isdigit() and int(port) <= 65_535 else 0, rest


def control_records(kraft_version: int, voters: VoterSet) -> list[tuple[bytes, bytes]]:
    """Return KRaftVersion and Voters as control records; none at kraft.version 0 (the voters are configuration)."""
    if kraft_version == 0:
        return []
    version = KRaftVersionRecord(version=0, k_raft_version=kraft_version)
    return [(record_batch.control_key(record_batch.KRAFT_VERSION), version.write(0)), voters_record(voters)]


def voters_record(voters: VoterSet) -> tuple[bytes, bytes]:
    """Return voters as a control record."""
    return record_batch.control_key(record_batch.KRAFT_VOTERS), voters.as_record().write(0)


class VoterHistory:
    """The history of voters and kraft.version in a log, by the offset from which they are effective."""

    def __init__(self, kraft_version: int, voters: VoterSet) -> None:
        """Start with the configured values."""
        self._initial = (kraft_version, voters)
        self._versions: list[tuple[int, int]] = []
        self._voters: list[tuple[int, VoterSet]] = []
        self.behaviours: frozenset[Behaviour] = frozenset()
        """What the newest kraft.version brings."""
        self.restart()

    @property
    def kraft_version(self) -> int:
        """Newest finalized kraft.version level."""
        return self._versions[-1][1]

    @property
    def voters(self) -> VoterSet:
        """Newest voters, committed or not."""
        return self._voters[-1][1]

    @property
    def voters_offset(self) -> int:
        """Offset of the record with `voters`; BEFORE_THE_LOG if they are from configuration or a bootstrap."""
        return self._voters[-1][0]

    def restart(self) -> None:
        """Forget all records."""
        self._versions = [(BEFORE_THE_LOG, self._initial[0])]
        self._voters = [(BEFORE_THE_LOG, self._initial[1])]
        self._find_behaviours()

    def apply(self, batch: Batch, offset: int | None = None) -> None:
        """Add a control batch; all of it at `offset` for a snapshot's. WireError when it is damaged."""
        for at, (key, value) in enumerate(batch.records, batch.base_offset):
            control_type = record_batch.control_type(key)
            where = at if offset is None else offset
            if control_type == record_batch.KRAFT_VERSION:
                self._versions.append((where, KRaftVersionRecord.read(value or b"", 0).k_raft_version))
            elif control_type == record_batch.KRAFT_VOTERS:
                self._voters.append((where, VoterSet.from_record(VotersRecord.read(value or b"", 0))))
        self._find_behaviours()

    def truncate(self, end_offset: int) -> None:
        """Forget records from `end_offset` on."""
        for entries in (self._versions, self._voters):
            del entries[_count_below(entries, end_offset) :]
        self._find_behaviours()

    def _find_behaviours(self) -> None:
        self.behaviours = present(levels=((KRAFT_VERSION, self.kraft_version),))

    def control_records_at(self, end_offset: int) -> list[tuple[bytes, bytes]]:
        """Return the control records of a snapshot below `end_offset`."""
        versions, voters = _count_below(self._versions, end_offset), _count_below(self._voters, end_offset)
        return control_records(self._versions[versions - 1][1], self._voters[voters - 1][1])


def _count_below(entries: Sequence[tuple[int, object]], offset: int) -> int:
    """Return the number of entries below `offset`; the first always is."""
    return max(bisect_right(entries, offset - 1, key=lambda entry: entry[0]), 1)
