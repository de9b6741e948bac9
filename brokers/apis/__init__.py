"""The APIs of a broker's client listener: one module per API or group of APIs, listed in `registry`.

Mirrors Kafka's KafkaApis. Each module defines an `Api`: request and response class, handler, error form and versions.
A handler returns the response message; it raises `ApiError`, which is converted with the API's error form, or
`ConnectionClosedError` where Kafka closes the connection. Handlers read the image and the replica manager of the broker
in the `RequestContext`; requests that a controller has to answer are forwarded to it (`forwarded`, KIP-590).
"""
