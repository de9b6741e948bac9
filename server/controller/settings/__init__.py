"""Configs, features, client quotas, policies and the releases that a controller can emulate.

Mirrors ConfigurationControlManager, FeatureControlManager, ClientQuotaControlManager and
ControllerMutationQuotaManager; KIP-133, KIP-339, KIP-584, KIP-546, KIP-599.

- `configs`, `config_rules`, `described_configs`: changes, validation and description of configs by resource.
- `features`, `feature_updates`: meaning of each metadata.version level, bootstrap records, finalized levels.
- `client_quotas`, `mutation_quota`: quota records, and the token buckets of partition mutations.
- `policies`: a test's create.topic.policy and alter.config.policy. `releases`: offers of other Kafka releases.

Invariants: metadata.version decides which records and fields may be written; a topic's value is its own, else the
controller node's, the cluster's, the default; a request changes a resource as a whole or not at all.
"""
