"""An asyncio server in a thread of its own: what clients under test call."""

from __future__ import annotations

import asyncio
import ssl
import threading
from typing import Self


class ThreadedServer:
    """Listens on loopback from ``__enter__`` to ``__exit__``; subclasses say what it answers.

    Attributes
    ----------
    url : str
        Its base URL.
    """

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.url = ""
        self._context = context
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        async def end() -> None:
            self._server.close()
            while others := asyncio.all_tasks() - {asyncio.current_task()}:
                for task in others:
                    task.cancel()
                await asyncio.wait(others)
            await asyncio.sleep(0)  # in which closed transports close their sockets

        asyncio.run_coroutine_threadsafe(end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(
            self.serve, "127.0.0.1", 0, backlog=1000, ssl=self._context
        )
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"https://localhost:{port}" if self._context else f"http://127.0.0.1:{port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection."""
        raise NotImplementedError


class ScriptedServer(ThreadedServer):
    """Answers each request with the next script, the last one again and again.

    A script is pieces of bytes, each sent by itself; ``None`` ends the connection.
    """

    def __init__(self, *scripts: list[bytes | None]) -> None:
        super().__init__()
        self.scripts = list(scripts)
        self.connections = self.asked = 0
        self.pause = 0.0  # between pieces

    def answer(self, *pieces: bytes) -> None:
        """Answer each request so, and end its connection."""
        self.scripts = [[*pieces, None]]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                await read_request(reader)
                script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
                self.asked += 1
                for piece in script:
                    if piece is None:
                        return
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(self.pause)
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()


async def read_request(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Head and body of the next request."""
    head = await reader.readuntil(b"\r\n\r\n")
    at = head.lower().index(b"content-length:")
    return head, await reader.readexactly(int(head[at + 15 :].split(b"\r\n", 1)[0]))
