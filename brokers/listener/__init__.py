"""A broker's client listeners: Kafka's SocketServer, with the security of `BrokerConfig.listener_security`.

`clients` is the broker's `mockraft.kafka_api.listener.Listener`, without sockets and clock; `client_listener` binds the
ports and passes what comes to the broker as events.
"""
