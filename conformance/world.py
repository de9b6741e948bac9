"""The environment of one case: its own brokers and topics, a connection, and the records that it caused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, overload

from mockraft.conformance.cleanup import Step, is_left, undoing
from mockraft.conformance.expectation import ANYTHING, InAnyOrder, NotApplicableError, NotAsExpectedError, expect
from mockraft.conformance.identities import Identities
from mockraft.conformance.log import Log, Written
from mockraft.conformance.records import Expected, PartitionState
from mockraft.conformance.requests import Tree, absent_field, feature_ranges, request
from mockraft.conformance.target import CannotConnectError, Target
from mockraft.wire import error_codes, messages
from mockraft.wire.client import DisconnectedError, KafkaConnection
from mockraft.wire.errors import WireError
from mockraft.wire.json_form import to_json
from mockraft.wire.message import Message

CAUGHT_UP = 1 << 40
"""A metadata offset beyond the end of any log: the broker reports that it has caught up."""
TIMEOUT_MS = 10_000
CLEANUP_TIMEOUT_S = 15.0
"""The time that a controller may take for one request of a cleanup; the API is not asked again after that."""
_ATTEMPTS = 20


@dataclass
class Broker:
    """A broker that the case registered; `dirs` are its directory ids, `registration` the request it sent."""

    id: int
    epoch: int
    dirs: list[str]
    registration: Tree

    @property
    def sender(self) -> Tree:
        """The fields of its requests that name it."""
        return {"brokerId": self.id, "brokerEpoch": self.epoch}


@dataclass
class Topic:
    """A topic that the case created."""

    name: str
    id: str


class World:
    """One case's view of the controller. `story` has its requests and responses, `level` is the metadata.version."""

    def __init__(self, target: Target, log: Log, identities: Identities, *, alone: bool) -> None:
        self.target = target
        self.level = target.metadata_version
        self.cluster_id = target.cluster_id
        self.identities = identities
        self.story: list[Tree] = []
        self._log = log
        self._alone = alone
        self._next_record = 0
        self._connection: KafkaConnection | None = None
        self._undo: list[Step] = []
        self._brokers: dict[int, Broker] = {}
        self._registrations: dict[int, Tree] = {}
        self._partitions: dict[tuple[str, int], PartitionState] = {}
        self._topic_ids: set[str] = set()

    def name(self, text: str = "it") -> str:
        """Return an unused name: for topics, users, clients, groups."""
        return self.identities.name(text)

    def uuid(self) -> str:
        """Return an unused broker id."""
        return self.identities.uuid()

    async def send(self, api: str, fields: Tree | None = None, *, answer: object = ANYTHING, version: int = -1) -> Tree:
        """Send a request (a JSON tree; omitted fields have Kafka's defaults) and expect this response.

        `version` defaults to the newest that both sides support. Returns the response as JSON. NotApplicableError if
        that version lacks a field of the request or of the expected response.
        """
        tree = fields or {}
        is_negotiated, version = version < 0, self._version(api, version)
        if is_negotiated and version < messages.by_name(f"{api}Request").max_version:
            for message_name, content in ((f"{api}Request", tree), (f"{api}Response", answer)):
                if absent := absent_field(message_name, content, version):
                    raise NotApplicableError(f"{message_name} {version}, the newest there, has no {absent}")
        message = request(api, tree, version)
        got = None
        for _ in range(_ATTEMPTS):
            got = await self._send(api, message, tree, version)
            # A controller under load may let a heartbeat wait for longer than its time.
            if api != "BrokerHeartbeat" or got["errorCode"] != error_codes.REQUEST_TIMED_OUT:
                break
        assert got is not None
        self._undo += undoing(api, tree, got)
        if api == "BrokerRegistration" and not got["errorCode"]:
            self._registrations[tree["brokerId"]] = tree
        expect(f"the answer to {api}", answer, got)
        return got

    async def wrote(self, *records: Expected, in_any_order: bool = False) -> list[Written]:
        """Expect that exactly these records were written since the last call, each in the version of the level."""
        found = await self.records()
        expected = [
            {"record": each.kind, "version": each.version(self.level), "fields": each.fields} for each in records
        ]
        got = [{"record": each.kind, "version": each.version, "fields": each.fields} for each in found]
        self.story.append({"records": got})
        expect("the records", InAnyOrder(expected) if in_any_order else expected, got)
        return found

    async def records(self) -> list[Written]:
        """Return the records written since the last call that concern this case (all records, if it runs alone)."""
        await self._log.catch_up()
        new = self._log.records[self._next_record :]
        self._next_record += len(new)
        mine = [each for each in new if self._concerns_me(each)]
        for each in mine:
            self._follow(each)
        return mine

    async def skip_records(self) -> None:
        """Begin the case: the records until now are others'."""
        await self._log.catch_up()
        self._next_record = len(self._log.records)

    def afterwards(self, api: str, fields: Tree) -> None:
        """Send this request when the case is over, whatever its outcome."""
        self._undo.append((api, fields))

    async def register(
        self, broker_id: int | None = None, *, answer: object = None, version: int = -1, **fields: object
    ) -> Broker:
        """Register a new broker with one directory, unless `fields` of the request differ."""
        request_tree: Tree = {
            "brokerId": self.identities.broker_id() if broker_id is None else broker_id,
            "clusterId": self.cluster_id,
            "incarnationId": self.uuid(),
            "listeners": [{"name": "PLAINTEXT", "host": "localhost", "port": 9092, "securityProtocol": 0}],
            "features": self.features(),
            "logDirs": [self.uuid()],
            **fields,
        }
        response = await self.send(
            "BrokerRegistration", request_tree, answer=answer or {"errorCode": 0}, version=version
        )
        broker = Broker(request_tree["brokerId"], response["brokerEpoch"], request_tree["logDirs"], request_tree)
        if not response["errorCode"]:
            self._brokers[broker.id] = broker
        return broker

    def features(self, **ranges: tuple[int, int] | None) -> list[Tree]:
        """Return the features of a registration: those of the controller, or these ranges (None: omitted)."""
        supported = {
            **self.target.supported_features,
            **{name.replace("_", "."): each for name, each in ranges.items()},
        }
        return feature_ranges({name: each for name, each in supported.items() if each is not None})

    async def broker(
        self, log_dirs: int = 1, *, rack: str | None = None, fenced: bool = False, cordoned: Sequence[int] = ()
    ) -> Broker:
        """Start a broker: registered, caught up and unfenced. `cordoned` are indexes of its directories."""
        broker = await self.register(logDirs=[self.uuid() for _ in range(log_dirs)], rack=rack)
        tags: Tree = {"cordonedLogDirs": [broker.dirs[index] for index in cordoned]} if cordoned else {}
        if not fenced or tags:
            await self.heartbeat(broker, answer={"errorCode": 0, "isFenced": fenced}, wantFence=fenced, **tags)
        await self.records()
        return broker

    async def brokers(self, count: int, log_dirs: int = 1) -> list[Broker]:
        """Start that many brokers; ids ascend."""
        return [await self.broker(log_dirs) for _ in range(count)]

    async def heartbeat(self, broker: Broker, *, answer: object = None, version: int = -1, **fields: object) -> Tree:
        """Send a heartbeat of a broker that has caught up, with these fields; without `answer`, expect success."""
        request_tree: Tree = {**broker.sender, "currentMetadataOffset": CAUGHT_UP, **fields}
        return await self.send("BrokerHeartbeat", request_tree, answer=answer or {"errorCode": 0}, version=version)

    async def fence(self, *brokers: Broker) -> None:
        """Fence these, one after the other; skip the records of that."""
        for broker in brokers:
            await self.heartbeat(broker, answer={"isFenced": True}, wantFence=True)
        await self.records()

    async def unfence(self, *brokers: Broker) -> None:
        """Unfence these, one after the other; skip the records of that."""
        for broker in brokers:
            await self.heartbeat(broker, answer={"isFenced": False})
        await self.records()

    async def topic(self, *replicas: Sequence[Broker], name: str = "t", **configs: str) -> Topic:
        """Create a topic with one partition on each of these lists of brokers; config names with `_` for `.`."""
        topic = self.creatable(name, *replicas, **configs)
        request_tree = {"topics": [topic], "timeoutMs": TIMEOUT_MS}
        answer = {"topics": [{"errorCode": 0, "topicId": ANYTHING}]}
        response = await self.send("CreateTopics", request_tree, answer=answer)
        await self.records()
        return Topic(topic["name"], response["topics"][0]["topicId"])

    @overload
    async def replicated(self, count: Literal[1], log_dirs: int = 1, **kind: str) -> tuple[Topic, Broker]: ...
    @overload
    async def replicated(self, count: Literal[2], log_dirs: int = 1, **kind: str) -> tuple[Topic, Broker, Broker]: ...
    @overload
    async def replicated(
        self, count: Literal[3], log_dirs: int = 1, **kind: str
    ) -> tuple[Topic, Broker, Broker, Broker]: ...
    async def replicated(self, count: int, log_dirs: int = 1, **kind: str) -> tuple[Topic | Broker, ...]:
        """Start that many brokers and create a topic with one partition on all of them; return it and them."""
        brokers = await self.brokers(count, log_dirs)
        return await self.topic(brokers, **kind), *brokers

    def creatable(self, name: str, *replicas: Sequence[Broker], **configs: str | None) -> Tree:
        """Return a manually assigned topic for CreateTopics."""
        return {
            "name": self.name(name),
            "numPartitions": -1,
            "replicationFactor": -1,
            "assignments": [{"partitionIndex": index, "brokerIds": ids(each)} for index, each in enumerate(replicas)],
            "configs": [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()],
        }

    async def partition(self, topic: Topic, index: int = 0) -> PartitionState:
        """Return a partition's state according to its records. Skips new records of the log."""
        await self.records()
        return self._partitions[topic.id, index]

    async def propose_isr(
        self,
        topic: Topic,
        isr: Sequence[Broker],
        *,
        sender: Broker | None = None,
        answer: object = ANYTHING,
        version: int = -1,
        **fields: object,
    ) -> Tree:
        """Send AlterPartition of partition 0 as its leader; `fields` are of the partition."""
        version = self._version("AlterPartition", version)
        view = await self.partition(topic)
        sender = sender or self._brokers[view.leader]
        members: Tree = {"newIsrWithEpochs": [{"brokerId": each.id, "brokerEpoch": each.epoch} for each in isr]}
        if version < 3:
            members = {"newIsr": ids(isr)}
        epochs = {"leaderEpoch": view.leader_epoch, "partitionEpoch": view.partition_epoch}
        partition: Tree = {"partitionIndex": 0, **epochs, **members, **fields}
        request_tree: Tree = {**sender.sender, "topics": [{"topicId": topic.id, "partitions": [partition]}]}
        return await self.send("AlterPartition", request_tree, answer=answer, version=version)

    async def close(self) -> None:
        """Remove what the case created, as far as the controller allows it, and close the connection."""
        story = self.story
        self.story = []
        for api, fields in reversed(self._undo):
            answer = await self._clean_up(api, fields)
            if (
                api == "UnregisterBroker"
                and is_left(answer)
                and (sent := self._registrations.pop(fields["brokerId"], None))
            ):
                await self._silence(sent)
        self._undo, self.story = [], story
        if self._connection is not None:
            await self._connection.close()

    async def _clean_up(self, api: str, fields: Tree) -> Tree | None:
        """Send a request; return None if the controller does not offer it or does not answer it."""
        if api in self.target.unanswered:
            return None
        try:
            async with asyncio.timeout(CLEANUP_TIMEOUT_S):
                return await self.send(api, fields)
        except TimeoutError:
            self.target.unanswered.add(api)
            if self._connection is not None:
                await self._connection.close()
        except (DisconnectedError, CannotConnectError, WireError, NotApplicableError, NotAsExpectedError, OSError):
            pass
        return None

    async def _silence(self, registration: Tree) -> None:
        """Fence a broker that stays registered, so that it neither expires, nor leads, nor holds up a feature."""
        answer = await self._clean_up("BrokerRegistration", {**registration, "features": self.features()})
        if answer is not None and not answer["errorCode"]:
            sender = {"brokerId": registration["brokerId"], "brokerEpoch": answer["brokerEpoch"]}
            await self._clean_up("BrokerHeartbeat", {**sender, "currentMetadataOffset": CAUGHT_UP, "wantFence": True})

    def _version(self, api: str, version: int) -> int:
        cls = messages.by_name(f"{api}Request")
        offered = self.target.api_versions.get(cls.api_key)
        if offered is None:
            raise NotApplicableError(f"the controller does not offer {api}")
        if version < 0:
            version = min(max(offered[1], cls.min_version), cls.max_version)
        if not offered[0] <= version <= offered[1]:
            raise NotApplicableError(f"the controller offers {api} {offered[0]}-{offered[1]}, not {version}")
        return version

    async def _send(self, api: str, message: Message, fields: Tree, version: int) -> Tree:
        if self._connection is None or not self._connection.is_open:
            self._connection = await self.target.open()
        self.story.append({"api": f"{api} v{version}", "request": fields, "answer": None})
        got = to_json(await self.target.send(self._connection, message, version=version), version)
        self.story[-1]["answer"] = got
        return got

    def _concerns_me(self, record: Written) -> bool:
        if record.kind == "NoOpRecord":
            return False
        fields = record.fields
        text = json.dumps(fields)
        mine = (
            self.identities.token in text
            or fields.get("brokerId") in self.identities.broker_ids
            or fields.get("topicId") in self._topic_ids
            or fields.get("tokenId") in self.identities.tokens
            or fields.get("resourceName") in {str(each) for each in self.identities.broker_ids}
        )
        if mine and record.kind == "TopicRecord":
            self._topic_ids.add(fields["topicId"])
        return mine or self._alone

    def _follow(self, record: Written) -> None:
        if record.kind == "PartitionRecord":
            at = (record.fields["topicId"], record.fields["partitionId"])
            self._partitions[at] = PartitionState.created(record.fields)
        elif record.kind == "PartitionChangeRecord":
            at = (record.fields["topicId"], record.fields["partitionId"])
            if at in self._partitions:
                self._partitions[at].change(record.fields)


def ids(brokers: Sequence[Broker]) -> list[int]:
    """Return their ids."""
    return [broker.id for broker in brokers]
