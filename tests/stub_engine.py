"""An OpenAI-shaped server with scripted answers, delays and deaths, for fault and load tests only.

The engine keeper starts it in the engine's place: ``GRIDLINE_ENGINE_COMMAND="<python> tests/stub_engine.py"``.
Its own options, there or among a card's engine arguments: ``--journal FILE`` (one JSON line a request),
``--start-seconds S``, ``--refuse-to-start``, ``--child`` (a second process in its group, as a real engine has).
It answers a chat line with ``echo: <last message>`` and embeds a text as eight numbers. Words in the last
message (or the embedding's input) script it:

    !sleep=0.5       answer after that many seconds       !hang            never answer
    !status=500      answer with that status               !overlong        400 as for a prompt over the context
    !die             the process ends at once              !sicken          all in flight get 500, it ends soon after
    !die-once        as !die, the first time only (needs a journal)
    !say=TEXT        answer with the rest of the message    !cut             finish_reason length
    !broken          200 with a body that is no JSON        !nan             200 with a number that is not JSON's
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

WORD = re.compile(r"!([a-z-]+)(?:=(\S+))?")


class Stub:
    """What all handlers share."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.model = options.served_model_name
        self.journal = Path(options.journal) if options.journal else None
        self.lock = threading.Lock()
        self.sick = threading.Event()
        self.flying = 0

    def note(self, text: str) -> bool:
        """Write the request down; whether one that asks for it was seen before."""
        if self.journal is None:
            return False
        with self.lock:
            # Only such a request is worth reading the whole journal.
            seen = (
                "!die-once" in text
                and self.journal.exists()
                and any(json.loads(line)["text"] == text for line in self.journal.read_text().splitlines())
            )
            with self.journal.open("a") as sink:
                sink.write(json.dumps({"text": text, "pid": os.getpid(), "flying": self.flying}) + "\n")
        return seen

    @contextmanager
    def counted(self) -> Iterator[None]:
        """A request in flight."""
        with self.lock:
            self.flying += 1
        try:
            yield
        finally:
            with self.lock:
                self.flying -= 1

    def fall_sick(self) -> None:
        """As vLLM when its core dies: 500 to all in flight, health 503, the server ends a little later."""
        self.sick.set()
        threading.Timer(0.3, lambda: os._exit(1)).start()


class Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"
    stub: Stub

    def do_GET(self) -> None:
        """Health and version."""
        if self.path == "/health":
            self._send(503 if self.stub.sick.is_set() else 200, b"")
        elif self.path == "/version":
            self._json(200, {"version": "stub-1"})
        else:
            self._json(404, {})

    def do_POST(self) -> None:
        """Answer a line as its words say."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers.get("Authorization") != f"Bearer {os.environ.get('VLLM_API_KEY')}":
            self._json(401, {"error": "Unauthorized"})
            return
        chat = self.path == "/v1/chat/completions"
        text = str(body["messages"][-1]["content"] if chat else body["input"])
        words = dict(WORD.findall(text))
        with self.stub.counted():
            if self._misbehaves(words, seen=self.stub.note(text)):
                return
        answer = _chat(body, text, words) if chat else _embeddings(body)
        data = json.dumps(answer | {"kv_transfer_params": None}).encode()
        if "nan" in words:
            data = data.replace(b'"total_tokens"', b'"x": NaN, "total_tokens"')
        self._send(200, b"<html>" if "broken" in words else data)

    def _misbehaves(self, words: dict[str, str], *, seen: bool) -> bool:
        """Do what the words say; whether the request is answered already (or never will be)."""
        until = time.monotonic() + (1e9 if "hang" in words else float(words.get("sleep", 0)))
        if "sicken" in words:
            self.stub.fall_sick()
        while time.monotonic() < until and not self.stub.sick.is_set():
            self.stub.sick.wait(min(0.05, max(0.0, until - time.monotonic())))
        if "die" in words or ("die-once" in words and not seen):
            os._exit(9)
        if self.stub.sick.is_set():
            self._error(500, "EngineCore encountered an issue.")
        elif "status" in words:
            self._error(int(words["status"]), "as scripted")
        elif "overlong" in words:
            self._error(
                400, "This model's maximum context length is 8192 tokens. However, you requested more."
            )
        else:
            return False
        return True

    def _error(self, status: int, message: str) -> None:
        self._json(status, {"error": {"message": message, "type": "x", "param": None, "code": status}})

    def _json(self, status: int, body: dict[str, Any]) -> None:
        self._send(status, json.dumps(body).encode())

    def _send(self, status: int, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Nothing."""


def _chat(body: dict[str, Any], text: str, words: dict[str, str]) -> dict[str, Any]:
    said = text.partition("!say=")[2] if "say" in words else f"echo: {text}"
    choices: list[dict[str, Any]] = [
        {
            "index": index,
            "message": {"role": "assistant", "content": said, "reasoning": None, "tool_calls": []},
            "logprobs": None,
            "finish_reason": "length" if "cut" in words else "stop",
            "stop_reason": None,
            "token_ids": None,
        }
        for index in range(body.get("n", 1))
    ]
    prompt, written = len(text.split()), len(said.split()) * len(choices)
    return {
        "id": "chatcmpl-engine",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": body["model"],
        "choices": choices,
        "usage": {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written},
        "prompt_logprobs": None,
    }


def _embeddings(body: dict[str, Any]) -> dict[str, Any]:
    inputs = body["input"] if isinstance(body["input"], list) else [body["input"]]
    data = [
        {"object": "embedding", "index": index, "embedding": [float(len(str(one)))] * 8}
        for index, one in enumerate(inputs)
    ]
    tokens = sum(len(str(one).split()) for one in inputs)
    usage = {
        "prompt_tokens": tokens,
        "total_tokens": tokens,
        "completion_tokens": 0,
        "prompt_tokens_details": None,
    }
    return {
        "id": "embd-x",
        "object": "list",
        "created": 1,
        "model": body["model"],
        "data": data,
        "usage": usage,
    }


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--journal")
    parser.add_argument("--start-seconds", type=float, default=0.0)
    parser.add_argument("--refuse-to-start", action="store_true")
    parser.add_argument("--child", action="store_true")
    parser.add_argument("--served-model-name", required=True)
    parser.add_argument("--port", type=int, required=True)
    options, _ = parser.parse_known_args()
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    time.sleep(options.start_seconds)
    if options.refuse_to_start:
        sys.exit(1)
    if options.child:
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Handler.stub = Stub(options)
    ThreadingHTTPServer.request_queue_size = 256
    server = ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
    server.daemon_threads = True
    server.serve_forever()


if __name__ == "__main__":
    main()
