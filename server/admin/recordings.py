"""Operations on recordings: stubs made from the answers of another controller, or of this one."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request
from mockraft.kafka_api.journal import matching, merged
from mockraft.server.admin import stub_schema
from mockraft.server.admin.access import TheDouble
from mockraft.server.admin.json_bodies import Model, StrictRoute
from mockraft.server.admin.problems import ProblemError, field_named, known
from mockraft.server.admin.recorder import RecordedStubs, Recorder, RecordingView, StubChoice
from mockraft.server.admin.requests import Mark
from mockraft.server.admin.stub_schema import NewStub
from mockraft.server.double import Double
from mockraft.server.stubs.match import Match
from mockraft.server.stubs.stub import Stub
from pydantic import Field, StrictBool

router = APIRouter(route_class=StrictRoute, tags=["recordings"])

ENTRIES_MAX = 10_000
"""Number of newest journal entries that stubs are made of at once."""

LISTEN = "127.0.0.1:0"


class Choice(Model):
    """Selection of exchanges that become stubs, and of the fields they match; the options of `mockraft record`."""

    filters: list[str] = Field(default=[], description="Only these APIs; a leading ! excludes one.")
    only: list[str] = Field(default=[], description="Match only these fields of requests.")
    ignore: list[str] = Field(default=[], description="Do not match these fields.")
    any_version: StrictBool = Field(default=False, description="Match requests of every version.")
    any_client: StrictBool = Field(default=False, description="Match requests of every client id.")
    repeats_as_scenarios: StrictBool = Field(
        default=True,
        description="Make a scenario of different answers to the same request; if false, keep the last one.",
    )

    def choice(self) -> StubChoice:
        """Return the options for the recorder."""
        return StubChoice(**{name: getattr(self, name) for name in Choice.model_fields})


class RecordingStart(Choice):
    """The options of a recording."""

    upstream: str = Field(
        description="HOST:PORT of the upstream controller; several with commas.", examples=["127.0.0.1:9093"]
    )
    listen: str = Field(default=LISTEN, description="Address and port for brokers; port 0 takes any free one.")


class JournalChoice(Choice, Mark):
    """Selection of answered requests."""

    match: stub_schema.Match | None = Field(default=None, description="Conditions on the requests; default: any.")


class Recording(Model):
    """A proxy to an upstream that records what passes."""

    id: str = Field(examples=["recording-1"])
    upstream: str = Field(description="Who answers.")
    bootstrap: str = Field(description="Brokers' controller.quorum.bootstrap.servers while it runs.")
    running: bool = Field(description="True while it listens.")
    connections: int
    requests: int
    answers: int
    by_api: dict[str, int] = Field(description="Requests by the API's name.")
    bytes: int = Field(description="Size of the recorded exchanges.")
    ended: str | None = Field(description="Why it no longer records while traffic continues; null while it does.")
    events: list[str] = Field(description="Other events, the newest last.")


class Recordings(Model):
    """All recordings, the oldest first."""

    recordings: list[Recording]


class LeftOut(Model):
    """Exchanges of which no stub was made."""

    api: str
    why: str
    count: int


class Recorded(Model):
    """Stubs, in the order in which their requests were first sent, as `/v1/stubs/import` takes them."""

    stubs: list[NewStub]
    left_out: list[LeftOut]
    loaded: bool = Field(description="True if they were added to this controller's stubs.")


async def _recorder(request: Request) -> Recorder:
    recorder: Recorder | None = request.app.state.recorder
    if recorder is None:
        about = "this admin API was started without a recorder: mockraft serve and Controller(admin_port=…) have one"
        raise ProblemError(409, about)
    return recorder


TheRecorder = Annotated[Recorder, Depends(_recorder)]
RecordingId = Annotated[str, Path(alias="recordingId", description="Id of the recording.")]
Load = Annotated[bool, Query(description="Also add the stubs to this controller's.")]


@router.post("/v1/recordings", status_code=201)
async def start_recording(body: RecordingStart, recorder: TheRecorder) -> Recording:
    """Listen in place of an upstream controller, and record its answers; brokers connect to `bootstrap`."""
    try:
        with field_named():
            return _shown(await recorder.start(body.upstream, body.listen, body.choice()))
    except (RuntimeError, OSError) as error:
        raise ProblemError(409, str(error)) from error


@router.get("/v1/recordings")
async def list_recordings(request: Request) -> Recordings:
    """List the recordings, with their counts."""
    recorder: Recorder | None = request.app.state.recorder
    return Recordings(recordings=[_shown(each) for each in (recorder.recordings() if recorder else ())])


@router.delete("/v1/recordings", status_code=204)
async def remove_all_recordings(recorder: TheRecorder) -> None:
    """Stop and remove all recordings."""
    await recorder.close()


@router.post("/v1/recordings/journal")
async def record_journal(body: JournalChoice, recorder: TheRecorder, double: TheDouble, load: Load = False) -> Recorded:
    """Return stubs of this controller's answers."""
    with field_named("match"):
        match = Match.from_json(body.match.root if body.match else {})
    entries = merged(double.journals.values(), body.mark)
    answered = list(matching(entries, match))[-ENTRIES_MAX:]
    with field_named():
        found = await recorder.stubs_of(answered, body.choice())
    return _recorded(found, double, load)


@router.get("/v1/recordings/{recordingId}")
async def get_recording(recording_id: RecordingId, recorder: TheRecorder) -> Recording:
    """Return a recording with its counts."""
    with known("recordingId"):
        return _shown(recorder.recording(recording_id))


@router.get("/v1/recordings/{recordingId}/stubs")
async def get_recorded_stubs(recording_id: RecordingId, recorder: TheRecorder, double: TheDouble) -> Recorded:
    """Return the stubs of the exchanges recorded so far; the recording continues."""
    with known("recordingId"):
        return _recorded(await recorder.stubs(recording_id), double, False)


@router.post("/v1/recordings/{recordingId}/stop")
async def stop_recording(
    recording_id: RecordingId, recorder: TheRecorder, double: TheDouble, load: Load = False
) -> Recorded:
    """Stop listening and return the stubs. Connected brokers are disconnected."""
    with known("recordingId"):
        await recorder.stop(recording_id)
        return _recorded(await recorder.stubs(recording_id), double, load)


@router.delete("/v1/recordings/{recordingId}", status_code=204)
async def remove_recording(recording_id: RecordingId, recorder: TheRecorder) -> None:
    """Stop and remove a recording; loaded stubs stay."""
    with known("recordingId"):
        await recorder.remove(recording_id)


def _shown(view: RecordingView) -> Recording:
    return Recording(**asdict(view))


def _recorded(found: RecordedStubs, double: Double, load: bool) -> Recorded:
    trees = found.stubs
    if load:
        with field_named("stubs"):
            stubs = [Stub.from_json(each) for each in trees]
        trees = [tree | {"id": double.script.stubs.add(stub).id} for tree, stub in zip(trees, stubs, strict=True)]
    left_out = [LeftOut(**asdict(each)) for each in found.left_out]
    return Recorded(stubs=[NewStub(each) for each in trees], left_out=left_out, loaded=load)
