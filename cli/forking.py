"""A process that imports `mockraft serve` once and forks a controller per request: a fork starts in milliseconds.

`spark_replay.regression.forked_processes` is its client. Standard input is a Unix socket. A request is the arguments of
`mockraft` as JSON with two descriptors, the controller's standard input and its output; the answer is its process id.
The process ends with its socket, controllers with their standard input (`--until-stdin-ends`).
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import socket
import sys

from mockraft import cli

REQUEST_BYTES_MAX = 1 << 16


def main() -> None:
    """Fork a controller per request, until the socket closes."""
    gc.disable()
    _import_serve()
    gc.freeze()  # a collection in a fork would copy the pages of what it shares
    with socket.socket(fileno=0) as requests:
        while True:
            request, descriptors, _, _ = socket.recv_fds(requests, REQUEST_BYTES_MAX, 2)
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            if not request:
                return
            arguments = json.loads(request)
            if "--admin-port" in arguments:
                _import_admin()
            pid = os.fork()
            if pid == 0:
                requests.detach()
                break
            for each in descriptors:
                os.close(each)
            requests.sendall(b"%d\n" % pid)
    _become(arguments, *descriptors)


def _become(arguments: list[str], stdin: int, output: int) -> None:
    """Run the command line as a process of its own would."""
    for theirs, ours in ((stdin, 0), (output, 1), (output, 2)):
        os.dup2(theirs, ours)
    os.close(stdin)
    os.close(output)
    sys.argv = ["mockraft", *arguments]
    cli.main()


def _import_serve() -> None:
    import mockraft.cli.logs
    import mockraft.cli.serve.command
    import mockraft.cli.serve.process  # noqa: F401


def _import_admin() -> None:
    pass


if __name__ == "__main__":
    main()
