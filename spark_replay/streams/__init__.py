"""TCP segments to runs of bytes, and runs to Kafka frames with request and response paired, in columns.

    runs           segments of one chunk, sorted into contiguous bytes of each direction, without duplicates
    stitch         `Reassembler`: runs of all chunks of a connection joined to two byte streams (`connections`)
    frame_reader   streams cut into frames by their four-byte lengths; `alignment` finds the first one after a loss
    pairing        responses matched with requests by correlation id

The `Reassembler` holds all state: for each open connection two `Direction`s (position, out-of-order pieces, half-read
frame) and the correlation ids of open requests. A `Connection` is one incarnation; a new SYN between the same endpoints
opens the next. All held state is bounded: bytes waiting for a gap to close, connections, unpaired frames. When a bound
is reached, the oldest is given up with a row of `schemas.CONN_EVENTS`.

Invariant: the frames depend on the packets and their order in the capture only, not on chunk size, splits, batch sizes
or partitions. So every decision that could depend on bytes still to come in the same chunk is postponed until the chunk
is complete (`settle`), and while requests that precede it wait for missing bytes. After a loss nothing is guessed: the
verdict on where a frame starts depends on its bytes only, however many come at once. For bytes captured twice the first
copy counts. Every captured byte is in a frame or counted in an event.
"""
