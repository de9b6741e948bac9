"""Requests of brokers and controllers: registrations, heartbeats, directories, producer ids, voters, descriptions."""

import hashlib

from mockraft.conformance.requests import Tree, feature_ranges
from mockraft.wire import uuids

from .drawn import Draw, drawn

RESERVED = [uuids.text_of(bytes(15) + bytes([number])) for number in (0, 1, 2, 99)]


def directories(broker_id: int) -> list[str]:
    """Return all directories that a broker may have."""
    return [f"$dir:{broker_id}:{number}" for number in range(1, 1 + broker_id % 3 + 1)]


def incarnation(broker_id: int, number: int) -> str:
    """Return an incarnation id."""
    return uuids.text_of(hashlib.md5(f"{broker_id} {number}".encode()).digest())


@drawn(70, "BrokerRegistration")
def register(draw: Draw) -> Tree:
    """Register a new broker, a restarted one, or one that repeats its registration."""
    absent = [each for each in range(1, 7) if each not in draw.model.brokers]
    broker_id = draw.rng.choice(absent) if absent and draw.maybe(0.7) else draw.broker_id()
    broker = draw.model.brokers.get(broker_id)
    own = directories(broker_id)
    log_dirs = list(own)
    same = broker is not None and draw.maybe(0.6)
    if broker is not None and same:
        log_dirs = draw.one(list(broker.log_dirs), own, draw.rng.sample(own, draw.rng.randint(1, len(own))))
    listeners = [{"name": "PLAINTEXT", "host": f"host{broker_id}", "port": 9000 + broker_id, "securityProtocol": 0}]
    if draw.maybe(0.1):
        listeners.append({"name": "EXTERNAL", "host": "other", "port": 9999, "securityProtocol": draw.one(1, 2, 3)})
    return {
        "brokerId": broker_id,
        "clusterId": "$cluster",
        "incarnationId": broker.incarnation if broker and same else incarnation(broker_id, draw.rng.randrange(99)),
        "listeners": listeners,
        "features": feature_ranges(draw.features),
        "rack": draw.one(None, "a", "b", ""),
        "logDirs": log_dirs,
        "previousBrokerEpoch": draw.one(-1, f"$epoch:{broker_id}"),
    }


@drawn(230, "BrokerHeartbeat")
def heartbeat(draw: Draw) -> Tree | None:
    """Send a broker's heartbeat: it starts, stays, is fenced, shuts down, loses or cordons directories."""
    found = draw.registered()
    if found is None:
        return None
    broker_id, broker = found
    offset = draw.one("$end", "$end", "$end", 1 << 40, "$end-1", "$end-7", f"$registered:{broker_id}", -1)
    body: Tree = {
        "brokerId": broker_id,
        "brokerEpoch": f"$epoch:{broker_id}",
        "currentMetadataOffset": offset,
        "wantFence": draw.maybe(0.08),
        "wantShutDown": draw.maybe(0.08),
    }
    if draw.maybe(0.15):
        some = list(broker.log_dirs) if len(broker.log_dirs) < 2 or draw.maybe(0.05) else list(broker.log_dirs[1:])
        body["offlineLogDirs"] = [*some[:1], *(["$dir:9:9"] if draw.maybe(0.2) else [])]
    if draw.maybe(0.3):
        own = directories(broker_id)
        body["cordonedLogDirs"] = draw.one(None, [], [], draw.rng.sample(own, draw.rng.randint(0, len(own))))
    return body


@drawn(12, "UnregisterBroker")
def unregister(draw: Draw) -> Tree:
    """Unregister a broker."""
    return {"brokerId": draw.broker_id()}


@drawn(60, "AssignReplicasToDirs")
def assign_directories(draw: Draw) -> Tree | None:
    """Assign a broker's replicas to directories."""
    found = draw.registered()
    if found is None:
        return None
    broker_id, broker = found
    held = [
        (topic, number)
        for topic, partitions in draw.model.topics.items()
        for number, partition in partitions.items()
        if broker_id in partition.replicas
    ]
    assigned: dict[str, dict[str, list[int]]] = {}
    for _ in range(draw.one(1, 1, 2, 3, 5)):
        if held and draw.maybe(0.9):
            topic, number = draw.rng.choice(held)
        elif (place := draw.partition()) is not None:
            topic, number, _ = place
        else:
            return None
        known = list(broker.log_dirs) or directories(broker_id)
        directory = draw.rng.choice(known) if draw.maybe(0.85) else draw.one("$dir:9:9", *RESERVED)
        numbers = assigned.setdefault(directory, {}).setdefault(topic, [])
        if number not in numbers:
            numbers.append(number)
    tree = [
        {
            "id": directory,
            "topics": [
                {"topicId": f"$topic:{topic}", "partitions": [{"partitionIndex": number} for number in numbers]}
                for topic, numbers in topics.items()
            ],
        }
        for directory, topics in assigned.items()
    ]
    return {"brokerId": broker_id, "brokerEpoch": f"$epoch:{broker_id}", "directories": tree}


@drawn(10, "AllocateProducerIds")
def allocate_producer_ids(draw: Draw) -> Tree | None:
    """Request a block of producer ids for a broker."""
    found = draw.registered()
    if found is None:
        return None
    return {"brokerId": found[0], "brokerEpoch": f"$epoch:{found[0]}"}


@drawn(4, "ControllerRegistration")
def register_controller(draw: Draw) -> Tree:
    """Register another controller, which need not be a voter."""
    number = draw.one(3001, 3002)
    return {
        "controllerId": number,
        "incarnationId": incarnation(number, draw.rng.randrange(3)),
        "zkMigrationReady": False,
        "listeners": [{"name": "CONTROLLER", "host": "host", "port": number, "securityProtocol": 0}],
        "features": feature_ranges(draw.features),
    }


@drawn(4, "UnregisterController")
def unregister_controller(draw: Draw) -> Tree:
    """Unregister another controller, most often one that is registered; sometimes the active one."""
    return {"controllerId": draw.one(3000, 3001, 3001, 3002, 3002, 7)}


@drawn(2, "RemoveRaftVoter")
def remove_voter(draw: Draw) -> Tree:
    """Update or remove a voter that does not exist."""
    return {"clusterId": draw.one("$cluster", None), "voterId": 7, "voterDirectoryId": incarnation(7, 1)}


@drawn(3, "DescribeCluster")
def describe_cluster(draw: Draw) -> Tree:
    """Ask mostly for controllers (endpoint type 2), with and without fenced brokers."""
    return {"endpointType": draw.one(2, 2, 1), "includeFencedBrokers": draw.maybe(0.5)}


@drawn(3, "DescribeQuorum")
def describe_quorum(_: Draw) -> Tree:
    """Ask for the only partition that has a quorum."""
    return {"topics": [{"topicName": "__cluster_metadata", "partitions": [{"partitionIndex": 0}]}]}


@drawn(3, "ApiVersions")
def api_versions(draw: Draw) -> Tree:
    """Request the supported APIs."""
    return {"clientSoftwareName": "fuzz", "clientSoftwareVersion": draw.one("1", "1.0-a")}


@drawn(1, "SaslHandshake")
def sasl_handshake(draw: Draw) -> Tree:
    """Start authentication on a listener without SASL."""
    return {"mechanism": draw.one("PLAIN", "SCRAM-SHA-256", "")}
