"""Replay captured requests to another controller and compare its responses with the captured ones.

A controller hands out ids, epochs and offsets that differ in every run, so bytes cannot be compared. Every field of
Kafka's messages has a class (`classes`, listed and overridden by `rules`):

    plain     compared as it is
    renamed   captured and live values are paired over the run (`renaming`); requests are sent with the live value
    masked    not compared (times, texts for people), or only whether there is a value (log offsets)
    unordered elements of an array are matched by name or number

A cluster session is all traffic to one cluster's controllers (`sessions`). `send_order` derives from the capture when
each request of a session may be sent, `requests` translates it, `replay` sends it over one live connection for each
captured one, and `diff` compares the response. `captured_log` adapts fetch offsets and topic ids, which live in the
metadata log. `targets` starts the controllers, `session_replay` gives the result as tables.

A request is sent at most once: `coordinator` refuses a session that Spark starts a second time. Memory holds a bounded
window of a session, whatever its length (`session_replay`).
"""
