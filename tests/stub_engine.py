"""An OpenAI-shaped server with scripted answers, delays and deaths, for fault and load tests only.

The engine keeper starts it in the engine's place: ``GRIDLINE_ENGINE_COMMAND="<python> tests/stub_engine.py"``.
Its own options, there or among a card's engine arguments: ``--journal FILE`` (one JSON line a request),
``--start-seconds S``, ``--refuse-to-start``, ``--refuse-while FILE`` (while that file exists), ``--answers FILE`` (a JSON
object, read for each request: what it answers to these messages), ``--child`` (a second process in its group, as a real
engine has).
It answers a chat line with ``echo: <last message>`` and embeds a text as eight numbers. It loads
adapters as vLLM does, by name. Words in the last
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
        self.answers = Path(options.answers) if options.answers else None
        self.lock = threading.Lock()
        self.sick = threading.Event()
        self.flying = 0
        self.adapters: set[str] = set()
        self.adapters_max = options.max_loras if options.enable_lora else 0

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

    def known(self, text: str) -> str | None:
        """What it was told to answer to this message."""
        found = json.loads(self.answers.read_text()).get(text) if self.answers else None
        return None if found is None else str(found)

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
        if self.path.endswith("_lora_adapter"):
            self._adapter(body)
            return
        if body["model"] not in {self.stub.model, *self.stub.adapters}:
            self._error(404, f"The model `{body['model']}` does not exist.")
            return
        text = _asked(body)
        words = dict(WORD.findall(text))
        with self.stub.counted():
            if self._misbehaves(words, seen=self.stub.note(text)):
                return
        said = self.stub.known(text) or _said(text, words)
        answer = ANSWERS[self.path](body, text, said, "cut" in words)
        data = json.dumps(answer | {"kv_transfer_params": None}).encode()
        if "nan" in words:
            data = data.replace(b'"total_tokens"', b'"x": NaN, "total_tokens"')
        self._send(200, b"<html>" if "broken" in words else data)

    def _adapter(self, body: dict[str, Any]) -> None:
        """Load or unload an adapter, as vLLM does; weights that begin with BAD cannot be loaded."""
        name, there = body["lora_name"], body["lora_name"] in self.stub.adapters
        if self.path == "/v1/unload_lora_adapter":
            self.stub.note(f"unload {name}")
            self.stub.adapters.discard(name)
            self._send(200 if there else 404, b"")
            return
        weights = (Path(body["lora_path"]) / "adapter_model.safetensors").read_bytes()
        self.stub.note(f"load {name}")
        if there or weights.startswith(b"BAD") or len(self.stub.adapters) >= self.stub.adapters_max:
            self._error(400, "already been loaded" if there else "cannot be loaded")
            return
        self.stub.adapters.add(name)
        self._send(200, b"")

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


def _asked(body: dict[str, Any]) -> str:
    """What a request's words are in: its last message, or its input."""
    messages = body["messages"] if "messages" in body else body["input"]
    last = messages[-1] if isinstance(messages, list) and messages else messages
    return str(last["content"] if isinstance(last, dict) else messages)


def _said(text: str, words: dict[str, str]) -> str:
    return text.partition("!say=")[2] if "say" in words else f"echo: {text}"


def _chat(body: dict[str, Any], text: str, said: str, cut: bool) -> dict[str, Any]:  # one table calls all
    choices: list[dict[str, Any]] = [
        {
            "index": index,
            "message": {"role": "assistant", "content": said, "reasoning": None, "tool_calls": []},
            "logprobs": None,
            "finish_reason": "length" if cut else "stop",
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


def _responses(
    body: dict[str, Any], text: str, said: str, cut: bool
) -> dict[str, Any]:  # one table calls all
    part: dict[str, Any] = {"type": "output_text", "text": said, "annotations": [], "logprobs": None}
    item = {
        "id": "msg_engine",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }
    prompt, written = len(text.split()), len(said.split())
    return {
        "id": "resp_engine",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": "incomplete" if cut else "completed",
        "model": body["model"],
        "output": [item],
        "temperature": body.get("temperature", 1.0),
        "top_p": 1.0,
        "usage": {
            "input_tokens": prompt,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": written,
            "total_tokens": prompt + written,
        },
        "input_messages": None,
    }


def _messages(body: dict[str, Any], text: str, said: str, cut: bool) -> dict[str, Any]:  # one table calls all
    return {
        "id": "chatcmpl-engine",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [{"type": "text", "text": said}],
        "stop_reason": "max_tokens" if cut else "end_turn",
        "usage": {"input_tokens": len(text.split()), "output_tokens": len(said.split())},
    }


def _embeddings(
    body: dict[str, Any], _text: str, _said: str, _cut: bool
) -> dict[str, Any]:  # one table calls all
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


ANSWERS = {
    "/v1/chat/completions": _chat,
    "/v1/embeddings": _embeddings,
    "/v1/responses": _responses,
    "/v1/messages": _messages,
}


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--journal")
    parser.add_argument("--start-seconds", type=float, default=0.0)
    parser.add_argument("--refuse-to-start", action="store_true")
    parser.add_argument("--refuse-while")
    parser.add_argument("--answers")
    parser.add_argument("--child", action="store_true")
    parser.add_argument("--enable-lora", action="store_true")
    parser.add_argument("--max-loras", type=int, default=0)
    parser.add_argument("--served-model-name", required=True)
    parser.add_argument("--port", type=int, required=True)
    options, _ = parser.parse_known_args()
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    time.sleep(options.start_seconds)
    if options.refuse_to_start or (options.refuse_while and Path(options.refuse_while).exists()):
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
