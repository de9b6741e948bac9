"""`mockraft serve`: one controller as a process.

A controller listens as soon as its options are checked. Its modules, which take most of the time until it can answer,
are imported after that (process.py): clients that come first wait for their answers, and nobody is refused.
"""

from __future__ import annotations

import logging
import os
import random
import re
import resource
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, NoReturn

from mockraft.cli.command_line import Command, variable_of
from mockraft.cli.exit_codes import ExitCode, exit_codes
from mockraft.cli.logs import configure
from mockraft.cli.serve import admin, quorum, release, security
from mockraft.cli.serve.failures import cannot_listen, fail, is_about_address
from mockraft.cli.serve.options import HEADINGS, OPTIONS, MissingPackageError, misspelled_variables
from mockraft.cli.serve.stubs import cluster_id_in, stub_file
from mockraft.kafka_api.listening import listen
from mockraft.kafka_api.options import OptionError, blaming
from mockraft.kafka_api.security import uses_tls
from mockraft.server.config import OPTIONS as OF_THE_CONTROLLER
from mockraft.server.config import ControllerConfig
from mockraft.server.server_properties import property_of
from mockraft.testing.proposals import overlay_of, proposals_of
from mockraft.wire.directory_ids import draw_cluster_id

ABOUT = """Run a Kafka KRaft controller, or a quorum of several, that brokers can use as their only one.

Prints one line on stdout once it accepts connections:

  mockraft ready bootstrap=127.0.0.1:9093 cluster_id=… node_id=3000 admin=off release=4.4 metadata_version=33

A broker joins it with that cluster id and three properties:

  controller.quorum.bootstrap.servers=127.0.0.1:9093
  controller.listener.names=CONTROLLER
  process.roles=broker
  (kafka-storage.sh format -t CLUSTER_ID -c broker.properties; kafka-server-start.sh broker.properties)

Without --data-dir the log is in memory, and brokers must not outlive the controller: a broker stops when its
controller comes back with a shorter log. SIGTERM and SIGINT end the controller with exit code 0.

  mockraft serve --port 0 --brokers 3              any free port, three simulated brokers that serve clients
  mockraft serve --data-dir controller-data        the log stays, in Kafka's own format
  mockraft serve --controllers 3                   a quorum in one process
  mockraft serve --metadata-version 3.9            for older brokers
  mockraft serve --stubs stubs.yaml                errors, delays, missing answers and other faults
  mockraft serve --release 3.9                     a controller of Kafka 3.9
  mockraft serve --admin-port 8080                 the admin API and the live page at 127.0.0.1:8080

Each option may be an environment variable instead, as MOCKRAFT_PORT for --port; the option goes first. A list has
spaces between its values. Secrets are read from files or variables, because other users can see a command line.

""" + exit_codes(
    ExitCode.CANNOT_LISTEN,
    ExitCode.UNUSABLE_DIRECTORY,
    ExitCode.CANNOT_CONTINUE,
    ExitCode.MISSING,
    done="it was stopped",
)

DESCRIPTORS_KEPT = 64
"""File descriptors that are not for connections: the log's files, the loop, standard streams, modules to import."""
DESCRIPTORS_LEAST = 128
REFUSED_AT_ONCE = 16
"""Connections above the listener's limit that are accepted so that the journal has their refusal."""
DESCRIPTORS_OF_BROKER = 3
"""Connections of a simulated broker to the controllers."""
ADMIN_CONNECTIONS_MAX = 512

_log = logging.getLogger("mockraft.serve")

_FIELDS_FROM_FILES = {
    "plain_users": "plain_users_file",
    "scram_users": "scram_users_file",
    "client_security": "client_config_file",
}


def _cluster_id(text: str) -> str:
    if not text or any(character.isspace() for character in text):
        about = "a cluster id is a text without spaces (kafka-storage random-uuid)"
        raise OptionError(about, "--cluster-id")
    return text


def _cluster_id_of(data_dir: Path | None) -> str | None:
    if data_dir is None:
        return None
    from mockraft.server.controller.log.data_dir import DataDirError, cluster_id_of

    try:
        return cluster_id_of(data_dir)
    except DataDirError as error:
        raise SystemExit(fail(ExitCode.UNUSABLE_DIRECTORY, str(error))) from error


def run(options: dict[str, Any]) -> int:
    """Run a controller until a signal and return the exit code. OptionError for options that cannot be."""
    configure(options["log_level"], options["log_json"])
    for name, hint in misspelled_variables():
        _log.warning("%s: mockraft serve has no such option; %s", name, hint)
    options |= release.checked(options)
    rng = random.Random(options["seed"])
    sockets, admin_sockets = _sockets(_raise_descriptor_limit(), options["brokers"])
    first_data_dir = quorum.first_data_dir(options)
    known = _cluster_id_of(first_data_dir) or cluster_id_in(options["initial_state"])
    cluster_id = options["cluster_id"] if "cluster_id" in options["given"] else known or draw_cluster_id(rng)
    quorum.check(options)
    options |= _proposals(options) | {
        "cluster_id": _cluster_id(cluster_id),
        "connections_max": min(options["connections_max"], sockets),
        "sockets_max": sockets + REFUSED_AT_ONCE,
        "admin_connections_max": admin_sockets,
    }
    config = _config(options)
    if security.lacks_users(config):
        _log.warning("PLAIN is enabled without users, so that nobody can log in with it: add --plain-users-file")
    if options["brokers"] and config.needs_login:
        about = "the simulated brokers must log in: give users, or their own credentials with --client-config-file"
        raise OptionError(about, "--brokers")
    try:
        options["admin"] = admin.checked(options)
        options["stub_file"] = stub_file(options["stubs"])
    except MissingPackageError as error:
        return fail(ExitCode.MISSING, str(error))
    listening = None
    if quorum.count(options) == 1:
        try:
            listening = listen(config.host, config.port)
        except OSError as error:
            if is_about_address(error):
                return fail(ExitCode.CANNOT_LISTEN, cannot_listen(config, 1, error))
            raise
    with _ending_without_error():
        from mockraft.cli.serve.process import serve

        return serve(config, rng, options, listening)


@contextmanager
def _ending_without_error() -> Iterator[None]:
    """Let SIGTERM and SIGINT end the process with exit code 0, until its event loop handles them."""
    before = {
        number: signal.signal(number, lambda *_: sys.exit(ExitCode.DONE)) for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _proposals(options: Mapping[str, Any]) -> dict[str, Any]:
    profiles = options["profile"] or ()
    with blaming("--profile"):
        proposals = proposals_of(profiles)
    with blaming("--schemas"):
        return {"proposals": proposals, "overlay": overlay_of(profiles, options["schemas"] or ())}


def _config(options: Mapping[str, Any]) -> ControllerConfig:
    """Return the config: options by the names of its fields, and users from their files. OptionError."""
    try:
        options = {**options, **security.users_of(options), **security.secrets_of(options)}
        config = ControllerConfig(**{f.name: options[f.name] for f in fields(ControllerConfig) if f.name in options})
        if uses_tls(config.security_protocol):
            from mockraft.kafka_api.tls import server_context

            server_context(config)
    except ValueError as error:
        raise OptionError(_in_options(str(error))) from error
    except OSError as error:
        raise OptionError(f"{error.filename}: {error.strerror}") from error
    return config


def _in_options(text: str) -> str:
    """Return an error about fields of ControllerConfig with the options, or the properties, in place of the fields."""
    names = {each.name for each in OF_THE_CONTROLLER}

    def option(found: re.Match[str]) -> str:
        row = OPTIONS.get(_FIELDS_FROM_FILES.get(found[0], found[0]))
        if row is None:
            return property_of(found[0]) if found[0] in names else found[0]
        variable = variable_of(row)
        return f"{row.flag} (env var: '{variable}')" if variable else row.flag

    return re.sub(r"\b[a-z]+(?:_[a-z]+)+\b", option, text)


def _sockets(descriptors: int, brokers: int) -> tuple[int, int]:
    """Return how many connections the listeners and the admin API may have, of so many open files. OptionError."""
    least = DESCRIPTORS_LEAST + DESCRIPTORS_OF_BROKER * brokers
    if descriptors < least:
        raise OptionError(f"the limit of open files (ulimit -n) is {descriptors}; {least} are needed at least")
    left = descriptors - DESCRIPTORS_KEPT - DESCRIPTORS_OF_BROKER * brokers
    admin_sockets = min(ADMIN_CONNECTIONS_MAX, left // 4)
    return left - admin_sockets, admin_sockets


def _raise_descriptor_limit() -> int:
    """Raise the limit of open files as far as allowed; return the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 1 << 20 if hard == resource.RLIM_INFINITY else hard
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return 1 << 20 if soft == resource.RLIM_INFINITY else soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (ValueError, OSError):
        return soft
    return wanted


def _serve(options: dict[str, Any]) -> NoReturn:
    """Run a controller and end the process."""
    try:
        code = run(options)
    finally:
        logging.shutdown()
    # Everything is written. To free the objects of a thousand brokers one by one takes a second.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


COMMANDS = {"serve": Command("serve", _serve, ABOUT, table=tuple(OPTIONS.values()), headings=HEADINGS)}
