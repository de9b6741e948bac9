"""Named faults that are switched on and off: toxics of connections' bytes, presets of the controller, timed plans.

A `FaultKind` is either a toxic, which works on the bytes of one direction of a connection (latency, bandwidth, reset:
toxiproxy's names where it has them), or a preset, which makes the controller misbehave in a way that real clusters know
(a stale leader, a lost registration) and is made of stubs and commands.

A `Fault` is a kind with parameters, a match of connections and a share of them that it affects (`toxicity`). `Faults`
holds the faults of a controller or of all nodes of a quorum and runs one `Plan`, a timed list of steps with ramps;
`chaos` draws such a plan from a seed.

Invariants: `Pipe` and `Toxic` have no sockets and no clock (bytes and times go in, bytes and times come out, in order);
every random draw comes from the fault's seed and the connection, so a run can be repeated; a preset that is
switched off has taken back everything it did.
"""
