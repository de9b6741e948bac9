"""ACLs, the authorizer, delegation tokens and SCRAM credentials.

Mirrors AclControlManager, StandardAuthorizer, DelegationTokenControlManager and ScramControlManager; KIP-140, KIP-290,
KIP-48, KIP-554, KIP-900. The data is in the image (`controller.image.security`, with an index for look-ups); the
modules here validate requests, generate records and decide.

- `acl_types`: Kafka's numbers for resources, patterns, operations and permissions.
- `acls`: new and deleted ACLs, filters. `authorizer`: allow or deny.
- `delegation_tokens`: create, renew, expire, delete expired ones periodically.
- `scram`: alterations of credentials.

Invariants: a denial takes precedence over any allowance; super users are always allowed; without an authorizer
everything is allowed. Passwords are never stored, only the keys of RFC 5802.
"""
