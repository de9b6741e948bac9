"""File operations of a log directory, and the disks that implement them.

`Disk` is the interface: a real file system, memory, or a disk with injected faults around one of these. Code above this
package never opens a file by itself, so that each I/O error passes `io_errors`, which decides as Kafka's
LogDirFailureChannel does whether the whole directory is offline. KIP-18 describes the narrower rule, one lost replica.
"""
