"""ACLs created, described and deleted; without an authorizer each request is refused."""

from mockraft.conformance.requests import Tree

from .drawn import Draw, drawn

ANY, MATCH, LITERAL, PREFIXED = 1, 2, 3, 4
TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, TOKEN, USER = 2, 3, 4, 5, 6, 7
PRINCIPALS = ("User:ann", "User:bob", "User:*")
HOSTS = ("*", "127.0.0.1", "10.0.0.1")
OPERATIONS = range(2, 16)
DENY, ALLOW = 2, 3


@drawn(14, "CreateAcls")
def create_acls(draw: Draw) -> Tree:
    """Create one or a few, some of them twice."""
    made = [_acl(draw) for _ in range(draw.one(1, 1, 2, 4))]
    if draw.maybe(0.1):
        made.append(dict(made[0]))
    return {"creations": made}


def _acl(draw: Draw) -> Tree:
    kind = draw.one(TOPIC, TOPIC, TOPIC, CLUSTER, CLUSTER, GROUP, TRANSACTIONAL_ID, TOKEN, USER)
    name = "kafka-cluster" if kind == CLUSTER else draw.topic() if kind == TOPIC else draw.one("g", "*", "User:ann")
    return {
        "resourceType": kind,
        "resourceName": name if draw.maybe(0.8) or kind == CLUSTER else draw.one("*", "t"),
        "resourcePatternType": LITERAL if kind == CLUSTER else draw.one(LITERAL, LITERAL, PREFIXED),
        "principal": draw.rng.choice(PRINCIPALS),
        "host": draw.rng.choice(HOSTS) if draw.maybe(0.2) else "*",
        "operation": draw.rng.choice(OPERATIONS),
        "permissionType": draw.one(ALLOW, ALLOW, ALLOW, DENY),
    }


def _filter(draw: Draw) -> Tree:
    acl = _acl(draw)
    return {
        "resourceTypeFilter": draw.one(ANY, acl["resourceType"]),
        "resourceNameFilter": draw.one(None, acl["resourceName"]),
        "patternTypeFilter": draw.one(ANY, MATCH, LITERAL, PREFIXED),
        "principalFilter": draw.one(None, acl["principal"]),
        "hostFilter": draw.one(None, None, acl["host"]),
        "operation": draw.one(ANY, acl["operation"]),
        "permissionType": draw.one(ANY, acl["permissionType"]),
    }


@drawn(5, "DeleteAcls")
def delete_acls(draw: Draw) -> Tree:
    """Delete the ACLs that some filters match."""
    return {"filters": [_filter(draw) for _ in range(draw.one(1, 1, 2))]}


@drawn(6, "DescribeAcls")
def describe_acls(draw: Draw) -> Tree:
    """Describe the ACLs that a filter matches."""
    return _filter(draw)
