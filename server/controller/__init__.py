"""The controller itself: decisions make records, records make the image. No sockets, no clock.

Mirrors Kafka's QuorumController and its control managers. An operation reads the image and returns a ControllerResult:
records and the response to send once they are written. `Controller.commit` appends the records as one batch, applies
them to the image in log order, and only then returns the response.

    request → decision (pure) → records → log → image → response

Invariants: the image is a function of the log (`replay(log) = image`); a standby's image has committed records only;
state outside the log (sessions, heartbeat offsets, quota buckets) belongs to the active controller and is rebuilt when
it becomes active.

Packages by subject: `log` (bytes on disk and in memory), `image` (state), `brokers`, `topics`, `security`, `settings`
(decisions), `quorum` (identities and voters). Time is the argument `now_ms`, randomness is `Controller.rng`.
"""
