"""Configs, features, quotas, credentials and delegation tokens."""

from mockraft.conformance.requests import Tree, in_base64

from .drawn import Draw, drawn

TOPIC_VALUES: dict[str, list[str]] = {
    "min.insync.replicas": ["1", "2", "3"],
    "unclean.leader.election.enable": ["true", "false"],
    "retention.ms": ["1000", "-1"],
    "cleanup.policy": ["delete", "compact", "compact,delete"],
    "segment.bytes": ["1048576"],
    "leader.replication.throttled.replicas": ["*", "0:1,1:2"],
}
BROKER_VALUES: dict[str, list[str]] = {
    "min.insync.replicas": ["1", "2"],
    "unclean.leader.election.enable": ["true", "false"],
    "log.cleaner.threads": ["1", "2"],
    "background.threads": ["3"],
    "cordoned.log.dirs": ["", "/a", "/a,/b", "*"],
    "log.cleanup.policy": ["delete", "compact"],
    "no.such.key": ["x"],
}
OTHER_VALUES: dict[int, dict[str, list[str]]] = {
    2: TOPIC_VALUES,
    4: BROKER_VALUES,
    16: {"interval.ms": ["1000"], "metrics": ["a,b", ""], "match": ["client_id=x"]},
    32: {"consumer.session.timeout.ms": ["45000"], "share.session.timeout.ms": ["50000"]},
}
LISTS = {"cleanup.policy", "leader.replication.throttled.replicas", "cordoned.log.dirs", "metrics", "match"}
WRONG_VALUES = ("", "abc", "-7", "1.5", "0", " 2 ", "999999999999999999999")
USERS = ("ann", "bob", "zoë")
SALTED = {"salt": in_base64(b"salt"), "saltedPassword": in_base64(b"p" * 32)}
# Less controller_mutation_rate, which would throttle the fuzz itself.
QUOTA_KEYS = {
    "producer_byte_rate": (1024.0, 5.0),
    "consumer_byte_rate": (2048.0, 1.5),
    "request_percentage": (12.5, 200.0),
    "connection_creation_rate": (10.0, 2.5),
}


def resource(draw: Draw) -> tuple[int, str]:
    """Draw a config resource, type and name."""
    kind = draw.one(2, 2, 2, 4, 4, 4, 16, 32)
    if kind == 2:
        return kind, draw.topic()
    if kind == 4:
        return kind, draw.one("", "", str(draw.broker_id()), "3000")
    return kind, draw.one("m1", "m2")


def _value(draw: Draw, kind: int, key: str) -> str:
    if draw.maybe(0.08):
        return str(draw.rng.choice(WRONG_VALUES))
    return str(draw.rng.choice(OTHER_VALUES[kind][key]))


@drawn(60, "IncrementalAlterConfigs")
def incremental(draw: Draw) -> Tree:
    """Set, delete, append to or subtract from some configs of some resources."""
    resources: dict[tuple[int, str], list[Tree]] = {}
    for _ in range(draw.one(1, 1, 1, 2)):
        kind, name = resource(draw)
        configs = resources.setdefault((kind, name), [])
        for key in draw.rng.sample(list(OTHER_VALUES[kind]), draw.one(1, 1, 2)):
            operation = draw.one(0, 0, 0, 1, 1, 2, 3) if key in LISTS or draw.maybe(0.1) else draw.one(0, 0, 1)
            value = None if operation == 1 else _value(draw, kind, key)
            configs.append({"name": key, "configOperation": operation, "value": value})
    return _alteration(draw, resources)


@drawn(20, "AlterConfigs")
def replace_configs(draw: Draw) -> Tree:
    """Replace all configs of some resources."""
    resources = {}
    for _ in range(draw.one(1, 1, 2)):
        kind, name = resource(draw)
        keys = draw.rng.sample(list(OTHER_VALUES[kind]), draw.one(0, 1, 2))
        resources[kind, name] = [{"name": key, "value": _value(draw, kind, key)} for key in keys]
    return _alteration(draw, resources)


def _alteration(draw: Draw, resources: dict[tuple[int, str], list[Tree]]) -> Tree:
    tree = [{"resourceType": k, "resourceName": n, "configs": c} for (k, n), c in resources.items()]
    return {"resources": tree, "validateOnly": draw.maybe(0.15)}


@drawn(10, "DescribeConfigs")
def describe_configs(draw: Draw) -> Tree:
    """Ask for two keys of a resource, or for all of them."""
    kind, name = resource(draw)
    keys = None if draw.maybe(0.3) else draw.rng.sample(list(OTHER_VALUES[kind]), 2)
    described = {"resourceType": kind, "resourceName": name, "configurationKeys": keys}
    return {"resources": [described], "includeSynonyms": draw.maybe(0.5)}


@drawn(10, "UpdateFeatures")
def update_features(draw: Draw) -> Tree:
    """Upgrade and downgrade features; metadata.version only by validation, as it could not be reset."""
    updates = []
    names = [name for name in draw.features if name not in {"metadata.version", "kraft.version"}]
    validate_only = draw.maybe(0.25)
    for name in draw.rng.sample(names, draw.one(1, 1, 2)):
        if name == "eligible.leader.replicas.version" and draw.maybe(0.7):
            continue
        low, high = draw.features[name]
        updates.append(_update(draw, name, draw.one(low, high, high, high + 1)))
    if validate_only or not updates:
        validate_only = True
        updates.append(_update(draw, "metadata.version", draw.rng.randint(6, 31)))
    return {"timeoutMs": 60_000, "featureUpdates": updates, "validateOnly": validate_only}


def _update(draw: Draw, name: str, level: int) -> Tree:
    kind = draw.one(1, 1, 2, 3)
    return {"feature": name, "maxVersionLevel": level, "upgradeType": kind, "allowDowngrade": kind > 1}


@drawn(25, "AlterClientQuotas")
def alter_quotas(draw: Draw) -> Tree:
    """Alter quotas of users, clients and addresses."""
    entries = []
    for _ in range(draw.one(1, 1, 2)):
        kinds: tuple[str, ...] = draw.one(("user",), ("client-id",), ("user", "client-id"), ("ip",))
        names = {"user": [*USERS, None], "client-id": ["c", None], "ip": ["10.0.0.1", "::1", None]}
        entity = [{"entityType": kind, "entityName": draw.rng.choice(names[kind])} for kind in kinds]
        fitting = [key for key in QUOTA_KEYS if ("connection" in key) == ("ip" in kinds)]
        keys = draw.rng.sample(list(QUOTA_KEYS) if draw.maybe(0.1) else fitting, 1 if "ip" in kinds else 2)
        ops = [{"key": key, "value": draw.rng.choice(QUOTA_KEYS[key]), "remove": draw.maybe(0.35)} for key in keys]
        entries.append({"entity": entity, "ops": ops})
    return {"entries": entries, "validateOnly": draw.maybe(0.15)}


@drawn(20, "AlterUserScramCredentials")
def alter_credentials(draw: Draw) -> Tree:
    """Alter SCRAM credentials."""
    users = draw.rng.sample(USERS, draw.one(1, 1, 2))
    deletions, upsertions = [], []
    for user in users:
        mechanism = draw.one(1, 2)
        if draw.maybe(0.4):
            deletions.append({"name": user, "mechanism": mechanism})
        else:
            iterations = draw.one(4096, 8192, 16384, 4095)
            upsertions.append({"name": user, "mechanism": mechanism, "iterations": iterations, **SALTED})
    return {"deletions": deletions, "upsertions": upsertions}


@drawn(4, "CreateDelegationToken")
def create_token(draw: Draw) -> Tree:
    """Create a delegation token."""
    renewers = [{"principalType": "User", "principalName": name} for name in draw.rng.sample(USERS, draw.one(0, 1))]
    owner = draw.one(None, None, "bob")
    return {
        "ownerPrincipalType": None if owner is None else "User",
        "ownerPrincipalName": owner,
        "renewers": renewers,
        "maxLifetimeMs": draw.one(-1, 3_600_000),
    }


@drawn(4, "RenewDelegationToken")
def renew_token(draw: Draw) -> Tree:
    """Renew a token, perhaps an expired one."""
    return {"hmac": f"$hmac:{draw.rng.randrange(4)}", "renewPeriodMs": draw.one(-1, 600_000)}


@drawn(4, "ExpireDelegationToken")
def expire_token(draw: Draw) -> Tree:
    """Expire a token, now or later."""
    return {"hmac": f"$hmac:{draw.rng.randrange(4)}", "expiryTimePeriodMs": draw.one(-1, 600_000)}


@drawn(1, "DescribeDelegationToken")
def describe_tokens(_: Draw) -> Tree:
    """Describe tokens, which no controller supports."""
    return {"owners": None}


@drawn(1, "DescribeUserScramCredentials")
def describe_credentials(_: Draw) -> Tree:
    """Describe credentials, which no controller supports."""
    return {"users": [{"name": "ann"}]}
