"""The generator of `mockraft.wire`'s messages and records out of Kafka's schemas; nothing imports it at run time."""
