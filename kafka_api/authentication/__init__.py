"""Authentication of clients: SASL exchanges, credentials, and limits on unauthenticated connections.

A connection begins unauthenticated unless the listener is PLAINTEXT. It becomes authenticated by its TLS certificate
(`secured`) or by a completed SASL exchange (`admit`), and is closed when neither happens in time.

- `mockraft.kafka_api.logins`: the connections that have not authenticated, their deadlines, delayed refusals (KIP-306).
- `sasl_exchange`: the states of one login (SaslServerAuthenticator: KIP-43, KIP-152, KIP-368), fed with frames.
- `mechanisms`: PLAIN, SCRAM and OAUTHBEARER, token by token (PlainSaslServer, ScramSaslServer, OAuthBearerSaslServer).
- `bearer_tokens`: what a token of OAUTHBEARER must prove.
- `credentials`: users of the configuration, SCRAM credentials and delegation tokens of the image.

Invariant: no API handler sees a request of an unauthenticated connection, except ApiVersions. The client gets Kafka's
message; the real reason is in the journal only. Nonces come from a random source passed in, so runs are reproducible.
"""

from typing import Final

HEALTH_CLIENT_ID: Final = "mockraft-health"
"""Client id of `mockraft health`, which asks for the leader without a login: that is worth no warning."""
