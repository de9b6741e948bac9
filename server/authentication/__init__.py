"""Who is on the other side of a connection: SASL exchanges, names in certificates, and how long strangers may stay."""
