"""The logins of a listener, as its security options have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mockraft.kafka_api.logins import Logins
from mockraft.kafka_api.security import ServerSecurity, uses_sasl, uses_tls

if TYPE_CHECKING:
    import random

    from mockraft.kafka_api.api import AnyApi
    from mockraft.kafka_api.authentication.credentials import Credentials
    from mockraft.kafka_api.logins import LoginLimits


def logins_of(
    security: ServerSecurity,
    limits: LoginLimits,
    apis: Mapping[int, AnyApi],
    credentials: Credentials,
    rng: random.Random | None,
) -> Logins:
    """Return the logins of a listener; `rng` makes the nonces of SASL, which must not be predictable."""
    if uses_sasl(security.security_protocol):
        # Here, so that a PLAINTEXT listener starts faster.
        from mockraft.kafka_api.authentication.sasl_exchange import exchanges

        assert rng is not None, "a SASL listener needs rng"
        return Logins(limits, exchanges(security, apis, credentials, rng))
    if uses_tls(security.security_protocol):
        return Logins(limits, name_of_certificate=security.principal_mapper().name_of_certificate)
    return Logins(limits)
