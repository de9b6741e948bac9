"""The APIs of a broker's client listener: one module per API or group of APIs, listed in `registry`.

Mirrors Kafka's KafkaApis. Each module defines an `Api`: request and response class, handler, error form and versions.
A handler is synchronous and never sees the broker, only its components in a `BrokerView`, and the time in the
`RequestContext`. Its result is one of:

* the response message, or its bytes;
* NO_RESPONSE (Produce with acks=0);
* `Parked`: a deadline, and a function that is called again after each change that the request may wait for. This is
  Kafka's DelayedOperation; there is one list of parked requests instead of a purgatory per kind and key, so a retry
  that would be expensive first checks whether its partitions have changed;
* `ApiError`, which becomes the API's error form, or `ConnectionClosedError` where Kafka closes the connection.

Requests that a controller has to answer are parked until it has answered (`forwarded`, KIP-590).
"""
