"""All connections of a listener behind one epoll file descriptor, which the event loop watches as a single reader.

An event loop calls back for each event of each socket, and its transports queue each write; with short requests that
costs as much as answering them. Here one callback receives from every socket that is ready. Linux only: elsewhere the
transports of the event loop serve, with the same protocols.

- `transport`: what asyncio's transport is to its protocol, so that protocols, TLS and toxics notice nothing;
- `server`: accepts connections, and knows their transports;
- `receiver`: the callback, or in its place `Receiver` of mockraft-speed in C.

Invariant: epoll looks for exactly what a transport waits for (`EpollTransport.events`), and a transport that has bytes
to send waits to send them. The event loop's other work waits no longer than with asyncio's transports: a callback
serves what is ready, and looks for more only while less than `PureReceiver.TURN_US` has passed. Kafka's Selector also
serves all sockets that are ready, one after the other.
"""
