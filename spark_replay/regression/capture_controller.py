"""The asyncio server of a controller that answers from a capture; `captured_answers` has the logic."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Self

from mockraft.spark_replay.regression.captured_answers import CapturedAnswers
from mockraft.wire import api_keys
from mockraft.wire.connection import FrameReader
from mockraft.wire.errors import WireError

_READ_BYTES = 1 << 16


class CaptureController:
    """Serve `answers` at their address.

    Requests of one connection are answered in order, one at a time. A request without a captured response ends its
    connection, as a controller that died would; `on_event` is called with a line of text then.
    """

    def __init__(self, answers: CapturedAnswers, *, on_event: Callable[[str], None] = lambda _: None) -> None:
        self.answers = answers
        self.on_event = on_event
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def bootstrap(self) -> str:
        """host:port."""
        host, port = self.answers.address
        return f"{host}:{port}"

    async def start(self) -> None:
        """Listen; a port 0 in the answers' address is replaced by the assigned one. Raises OSError."""
        host, port = self.answers.address
        self._server = await asyncio.start_server(self._serve, host, port)
        self.answers.address = host, self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Close all connections."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        frames = FrameReader()
        try:
            while data := await reader.read(_READ_BYTES):
                for frame in frames.receive_data(data):
                    if not await self._answer(frame, writer):
                        return
        except WireError as error:
            self.on_event(f"connection closed: not a Kafka request: {error}")
        except (ConnectionError, asyncio.CancelledError):
            return
        finally:
            self._tasks.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _answer(self, frame: bytes, writer: asyncio.StreamWriter) -> bool:
        answer = self.answers.answer(frame)
        if answer is None:
            name = api_keys.name(int.from_bytes(frame[:2], signed=True))
            self.on_event(f"no captured response to {name} version {int.from_bytes(frame[2:4])}")
            return False
        if answer.wait_ms:
            await asyncio.sleep(answer.wait_ms / 1000)
        writer.write(answer.frame)
        await writer.drain()
        return True
