"""An engine that answers at once, for load tests only: the least that a chat line needs, so that the job is what takes time.

As ``tests/stub_engine.py`` the engine keeper starts it in the engine's place; it knows no script and keeps no journal.
"""

import argparse
import asyncio
import json

ANSWER = json.dumps(
    {
        "created": 1_700_000_000,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "An answer of some words. " * 20},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": 8, "total_tokens": 108},
    }
).encode()
VERSION = b'{"version": "fast-1"}'
END = b"\r\n\r\n"


def response(body: bytes) -> bytes:
    """A 200 with this body."""
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
        len(body),
        body,
    )


RESPONSES = {b"GET /health": response(b""), b"GET /version": response(VERSION)}


class Connection(asyncio.Protocol):
    """Answers one connection's requests, one after the other."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._held = bytearray()

    def data_received(self, data: bytes) -> None:
        """Answer every request that is whole."""
        self._held += data
        while (head_end := self._held.find(END)) >= 0:
            head = bytes(self._held[:head_end])
            _, found, rest = head.lower().partition(b"content-length:")
            size = head_end + len(END) + (int(rest.split(b"\r\n", 1)[0]) if found else 0)
            if len(self._held) < size:
                return
            del self._held[:size]
            self._transport.write(RESPONSES.get(b" ".join(head.split(b" ", 2)[:2]), response(ANSWER)))


async def serve(port: int) -> None:
    """Serve until the process is ended."""
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", port, backlog=256)
    await server.serve_forever()


def main() -> None:
    """Take the engine's arguments."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    options, _ = parser.parse_known_args()
    asyncio.run(serve(options.port))


if __name__ == "__main__":
    main()
