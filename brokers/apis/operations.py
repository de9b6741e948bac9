"""Operations on a resource as the bits of `authorizedOperations` (AclEntry.supportedOperations, KIP-430).

Without an authorizer all of them are allowed.
"""

from typing import Final

READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = range(
    3, 13
)
"""The numbers of AclOperation."""

ON_TOPIC: Final = sum(
    1 << each for each in (READ, WRITE, CREATE, DESCRIBE, DELETE, ALTER, DESCRIBE_CONFIGS, ALTER_CONFIGS)
)
ON_GROUP: Final = sum(1 << each for each in (READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS))
ON_CLUSTER: Final = sum(
    1 << each for each in (CREATE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE, ALTER, DESCRIBE)
)
