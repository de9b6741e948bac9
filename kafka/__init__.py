"""Kafka's own processes: jars from Maven, brokers, controllers and command-line tools, with TLS and SASL.

Tests and `mockraft run-kafka` start unmodified Kafka with `KafkaBroker`, `KafkaController` and `KafkaCluster`. Each
process has a folder of its own with properties, data and log, and is a `ChildProcess`: `start`, `wait_until_running`,
`stop`, `kill`. KafkaUnavailableError names what is missing where Java or Maven is not installed.
"""
