"""The state that the metadata log describes, as far as the generator needs it, built from records in shared names."""

from dataclasses import dataclass, field

from mockraft.conformance.records import PartitionState
from mockraft.conformance.requests import Tree


@dataclass
class ModelledBroker:
    """One registration; `epoch_index` and `registered_index` count the log's records."""

    incarnation: str
    epoch_index: int
    registered_index: int
    fenced: bool
    in_controlled_shutdown: bool
    log_dirs: list[str]
    cordoned: list[str] | None


@dataclass
class Model:
    """Brokers and controllers by id, partitions by topic and number, and the names of everything else."""

    brokers: dict[int, ModelledBroker] = field(default_factory=dict)
    topics: dict[str, dict[int, PartitionState]] = field(default_factory=dict)
    features: dict[str, int] = field(default_factory=dict)
    configs: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)
    quotas: dict[str, tuple[list[Tree], set[str]]] = field(default_factory=dict)
    credentials: set[tuple[str, int]] = field(default_factory=set)
    acls: set[str] = field(default_factory=set)
    tokens: set[str] = field(default_factory=set)
    controllers: dict[int, Tree] = field(default_factory=dict)
    record_count: int = 0
    _names: dict[str, str] = field(default_factory=dict)

    def record_index(self, kind: str, broker_id: int) -> int | None:
        """Return the index of the record whose offset is the broker's "epoch", or at which it was "registered"."""
        broker = self.brokers.get(broker_id)
        if broker is None:
            return None
        return broker.epoch_index if kind == "epoch" else broker.registered_index

    def partition_number(self, kind: str, place: str) -> int:
        """Return the "leaderEpoch" or "partitionEpoch" of "TOPIC:PARTITION"; 0 if there is none."""
        topic, _, number = place.rpartition(":")
        partition = self.topics.get(topic, {}).get(int(number))
        if partition is None:
            return 0
        return partition.leader_epoch if kind == "leaderEpoch" else partition.partition_epoch

    def take(self, name: str, record: Tree) -> None:
        """Apply the next record."""
        match name:
            case "RegisterBrokerRecord":
                self._register_broker(record)
            case "BrokerRegistrationChangeRecord":
                self._change_broker(record)
            case "UnregisterBrokerRecord":
                del self.brokers[record["brokerId"]]
            case "TopicRecord":
                self._names[record["topicId"]] = record["name"]
                self.topics[record["name"]] = {}
            case "RemoveTopicRecord":
                topic = self._names.pop(record["topicId"])
                del self.topics[topic]
                self.configs.pop((2, topic), None)
            case "PartitionRecord":
                self.topics[self._names[record["topicId"]]][record["partitionId"]] = PartitionState.created(record)
            case "PartitionChangeRecord":
                self.topics[self._names[record["topicId"]]][record["partitionId"]].change(record)
            case "ClearElrRecord":
                self._clear_elr(record["topicName"])
            case "AccessControlEntryRecord":
                self.acls.add(record["id"])
            case "RemoveAccessControlEntryRecord":
                self.acls.discard(record["id"])
            case "RegisterControllerRecord":
                self.controllers[record["controllerId"]] = record
            case "UnregisterControllerRecord":
                del self.controllers[record["controllerId"]]
            case "DelegationTokenRecord":
                self.tokens.add(record["tokenId"])
            case "RemoveDelegationTokenRecord":
                self.tokens.discard(record["tokenId"])
            case "FeatureLevelRecord":
                self.features[record["name"]] = record["featureLevel"]
            case "ConfigRecord":
                self._set_config(record)
            case "ClientQuotaRecord":
                self._set_quota(record)
            case "UserScramCredentialRecord":
                self.credentials.add((record["name"], record["mechanism"]))
            case "RemoveUserScramCredentialRecord":
                self.credentials.discard((record["name"], record["mechanism"]))
        self.record_count += 1

    def _register_broker(self, record: Tree) -> None:
        epoch = str(record["brokerEpoch"]).removeprefix("record ")
        self.brokers[record["brokerId"]] = ModelledBroker(
            incarnation=record["incarnationId"],
            epoch_index=int(epoch) if epoch.isdigit() else self.record_count,
            registered_index=self.record_count,
            fenced=record["fenced"],
            in_controlled_shutdown=record.get("inControlledShutdown", False),
            log_dirs=record.get("logDirs", []),
            cordoned=record.get("cordonedLogDirs"),
        )

    def _change_broker(self, record: Tree) -> None:
        broker = self.brokers[record["brokerId"]]
        if fenced := record.get("fenced", 0):
            broker.fenced = fenced > 0
        if record.get("inControlledShutdown", 0):
            broker.in_controlled_shutdown = True
        broker.log_dirs = record.get("logDirs") or broker.log_dirs
        if (cordoned := record.get("cordonedLogDirs")) is not None:
            broker.cordoned = cordoned

    def _clear_elr(self, name: str) -> None:
        for topic in [name] if name else list(self.topics):
            for partition in self.topics.get(topic, {}).values():
                if partition.elr or partition.last_known_elr:
                    partition.elr, partition.last_known_elr = [], []
                    partition.partition_epoch += 1

    def _set_config(self, record: Tree) -> None:
        key = record["resourceType"], record["resourceName"]
        resource = self.configs.pop(key, {})
        resource.pop(record["name"], None)
        if record["value"] is not None:
            resource[record["name"]] = record["value"]
        if resource:
            self.configs[key] = resource

    def _set_quota(self, record: Tree) -> None:
        _, keys = self.quotas.setdefault(repr(record["entity"]), (record["entity"], set()))
        keys.discard(record["key"])
        if not record["remove"]:
            keys.add(record["key"])
