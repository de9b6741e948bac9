"""Kafka's configuration keys per release, their values, and the effective configuration of a resource.

Controller and simulated brokers share this package, as Kafka's share ConfigDef, ConfigHelper and DynamicBrokerConfig.
It is pure, apart from reading files: tables and functions.

- `config_keys`: the keys of each resource type (topic, broker, group, client metrics) with type, default, validator and
    synonyms, read from schemas_json/<release>/configs.json.
- `config_values`: parsing and validation of a single value (ConfigDef.parseType and its validators).
- `dynamic_configs`: the broker keys that may change while a broker runs, and the values a node accepts.
- `described_configs`: the effective value of each key with its synonyms, strongest first: the resource's own value,
    this node's dynamic value, the cluster-wide default, server.properties, the default of the key.
- `config_responses`: DescribeConfigs responses from these.
- `java_properties`, `client_properties`: properties files, and those of clients.

Values are text, as in config records and on the wire; a value is parsed only to validate it or to print it as Kafka
does. Invalid values raise ApiError(INVALID_CONFIG) with Kafka's message.
"""
