"""The virtual clock of a replay's own controller: it goes as real time does, and skips what nobody waits for.

On a machine too busy to replay at the usual speed it goes slower: else sessions would end that did not in the capture.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from urllib.parse import urlsplit

from mockraft.wire.errors import DisconnectedError

TICK_S = 0.02
GAP_S_MAX = 2 * TICK_S
"""Real time that passes for the controller between two ticks, however late the second one is."""


class RemoteClock:
    """Moves the clock of a controller (`mockraft serve --virtual-clock`) by its admin API.

    The controller's sessions, long polls and periodic work depend on this clock alone, so that a broker's session
    expires at once when its absence is skipped.
    """

    def __init__(self, admin: str) -> None:
        self._address = urlsplit(admin)
        self._passed_s = 0.0
        self._read_s = asyncio.get_running_loop().time()
        self._sent_ms = 0
        self._turn = asyncio.Lock()

    def now_s(self) -> float:
        """Return the seconds that have passed for the controller."""
        return self._passed_s + min(asyncio.get_running_loop().time() - self._read_s, GAP_S_MAX)

    async def run(self) -> None:
        """Keep the controller's clock going until cancelled, or until the controller is gone."""
        with suppress(DisconnectedError):  # its requests fail as well, and their rows tell it
            while True:
                await self.skip_to(self.now_s())
                await asyncio.sleep(TICK_S)

    async def skip_to(self, due_s: float) -> None:
        """Skip to a time of `now_s`. Raises DisconnectedError."""
        self._passed_s = max(due_s, self.now_s())
        self._read_s = asyncio.get_running_loop().time()
        async with self._turn:
            ms = int(self._passed_s * 1000) - self._sent_ms
            if ms <= 0:
                return
            self._sent_ms += ms
            try:
                await self._post(b'{"ms": %d}' % ms)
            except (OSError, EOFError) as error:
                raise DisconnectedError(f"the clock of {self._address.netloc} cannot be moved: {error}") from None

    async def _post(self, body: bytes) -> None:
        reader, writer = await asyncio.open_connection(self._address.hostname, self._address.port)
        try:
            head = f"POST /v1/clock/advance HTTP/1.1\r\nHost: {self._address.netloc}\r\nConnection: close\r\n"
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            answer = await reader.read()
        finally:
            writer.close()
        if not answer.startswith(b"HTTP/1.1 200 "):
            raise OSError(answer.partition(b"\r\n")[0].decode(errors="replace") or "no answer")
