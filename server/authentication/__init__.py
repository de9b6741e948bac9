"""Who is on the other side of a connection: SASL exchanges, and how long strangers may stay."""
