"""Secrets in messages: which fields hold them, and copies without them.

* `masks` has the values in place of secrets: asterisks, as long as the secret on the wire, `[hidden]` as text and JSON.
* `secret_fields` is the only table of what is secret: fields by struct, and Kafka's rule for the values of configs.
* `messages` makes copies without secrets: of messages, frames, record batches and JSON.

Values are hidden where they become text, JSON or a file. Message objects keep the real values.
"""
