"""Why a test fails although none of its assertions does: what it set up and never met, and what broke on the way."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from mockraft.kafka_api.journal import ClosedConnection, Entry, Exchange, line
from mockraft.kafka_api.journal.lines import entry_text, raised
from mockraft.kafka_api.journal.verification import described
from mockraft.server.stubs.faults.fault import ClientEnd
from mockraft.wire.names import camel

if TYPE_CHECKING:
    from mockraft.server.state.state import State
    from mockraft.server.stubs.faults.fault import ConnectionMatch, Fault
    from mockraft.server.stubs.faults.registry import Faults
    from mockraft.server.stubs.stub import Stub
    from mockraft.server.stubs.stub_list import StubList

_SHOWN_MAX = 10


class Complaint(NamedTuple):
    """A reason to fail: the id of the stub, the fault or the entry of the journal, and the text."""

    id: str
    text: str


def complain(complaints: Sequence[Complaint]) -> None:
    """AssertionError with these complaints, the first of them at any rate, if there are any."""
    __tracebackhide__ = True
    if complaints:
        more = [f"… and {len(complaints) - _SHOWN_MAX} more"] if len(complaints) > _SHOWN_MAX else []
        raise AssertionError("\n\n".join([*(each.text for each in complaints[:_SHOWN_MAX]), *more]))


def unused_stubs(stubs: StubList, requests: Sequence[Exchange], among: Iterable[Stub] | None = None) -> list[Complaint]:
    """Complain of stubs that never served, of all or `among` these, with the nearest requests."""

    def text(stub: Stub) -> str:
        return f"stub {stub.id} was never used: {described(stub.match)}" + _near(stubs, stub, requests)

    unused = stubs.unused() if among is None else [stub for stub in among if not stub.called]
    return [Complaint(stub.id, text(stub)) for stub in unused]


def unfired_faults(faults: Faults, state: State, requests: Sequence[Exchange]) -> list[Complaint]:
    """Complain of faults that never took effect, and say at which brokers their clients were instead."""

    def text(fault: Fault) -> str:
        why = f"\n  {fault.error}" if fault.error else ""
        try:
            named = fault.params.integer("broker_id") if "broker_id" in fault.params else -1
            for broker_id in (named, *fault.match.broker_id):
                if broker_id >= 0:
                    state.broker(broker_id)
        except ValueError as unknown:
            why = f"\n  {unknown}"
        except RuntimeError:
            pass  # no controller is active that knows them
        if fault.kind.toxic is not None and (brokers := sorted(_brokers_met(fault.match, requests))):
            where = ", ".join(map(str, brokers))
            why = f"\n  its clients sent requests to broker {where}; without broker={where} it affects controllers only"
        scopes = {**fault.params, **fault.match.to_json()}
        about = ", ".join([fault.kind.name, *(f"{camel(name)}={value}" for name, value in scopes.items())])
        return f"fault {fault.id} never met anything: {about}{why}"

    return [Complaint(fault.id, text(fault)) for fault in faults.unfired()]


def _brokers_met(match: ConnectionMatch, requests: Iterable[Exchange]) -> set[int]:
    """Return the simulated brokers whose clients agree with the scopes of a fault of connections to controllers."""

    def client(at: Exchange) -> ClientEnd:
        return ClientEnd(at.client_id, at.broker_id, at.connection_id, at.client.listener, at.node_id, at.peer_address)

    return {each.node_id for each in requests if each.at_broker and match.meets(client(each))}


def failures(entries: Iterable[Entry]) -> list[Complaint]:
    """Complain of what functions of stubs raised, and of failures of mockraft itself.

    Clients see UNKNOWN_SERVER_ERROR, which they often only try again.
    """
    found = []
    for entry in entries:
        if not isinstance(entry, ClosedConnection) and entry.failure is not None:
            about = f"{line(entry, entry_text(entry).at_ms)}\n{entry.failure.strip()}"
            found.append(Complaint(str(entry.id), f"{raised(entry.failure)}\n{textwrap.indent(about, '  ')}"))
    return found


def unexpected_requests(stubs: StubList, requests: Sequence[Exchange]) -> list[Complaint]:
    """Complain of requests that strict stubs did not expect, with the nearest stubs."""
    return [
        Complaint(str(each.id), f"request #{each.id} was not expected: {each!r}" + _near(stubs, each, requests))
        for each in requests
        if each.unmatched
    ]


def _near(stubs: StubList, of: Exchange | Stub, requests: Sequence[Exchange]) -> str:
    return "".join("\n" + textwrap.indent(miss.describe(), "  ") for miss in stubs.near_misses(of, requests))
