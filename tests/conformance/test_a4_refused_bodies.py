"""Rows 67 to 69: keys and content that a batch does not take are refused, never followed, forwarded or dropped."""

import socket
from typing import Any

from tests.conformance.batch_service import Service
from tests.conformance.watching import bodies, refusals, refused_keys

STEERING: dict[str, Any] = {
    "chat_template_kwargs": {"tokenize": True},
    "chat_template": "{% for i in range(10**9) %}x{% endfor %}",
    "mm_processor_kwargs": {"num_crops": 4},
    "priority": 1,
    "structured_outputs": {"json": {}},
    "guided_json": {"type": "object"},
    "guided_regex": "(a+)+b",
    "guided_choice": ["a"],
    "guided_grammar": "root ::= 'a'",
    "guided_decoding_backend": "outlines",
    "add_generation_prompt": False,
    "continue_final_message": True,
    "documents": [{"text": "a"}],
    "prompt_logprobs": 1,
    "min_tokens": 5,
    "ignore_eos": True,
    "logits_processors": ["a.b"],
    "echo": True,
    "vllm_xargs": {"a": "b"},
    "kv_transfer_params": {},
    "cache_salt": "a",
    "request_id": "a",
}


def test_case_67_addresses_are_never_called(service: Service) -> None:
    """Addresses in a body, in a key or in a content part, are refused at validation, and nobody connects to them."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0)
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        keys: dict[str, Any] = {
            "api_base": address, "base_url": address, "url": address, "callback_url": address,
            "extra_headers": {"authorization": "x"}, "extra_body": {"api_base": address},
        }  # fmt: skip
        parts: list[dict[str, Any]] = [
            {"type": "image_url", "image_url": {"url": address}},
            {"type": "image_url", "image_url": {"url": "file:///etc/passwd"}},
            {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}},
            {"type": "file", "file": {"file_id": "file-a"}},
            {"type": "video_url", "video_url": {"url": address}},
            {"type": "text", "text": "a", "image_url": {"url": address}},
        ]
        content = [[{"type": "text", "text": "What is this?"}, part] for part in parts]
        messages = [
            *({"role": "user", "content": one} for one in content),
            {"role": "user", "content": "a", "image_url": address},
        ]
        bodies_ = [{key: value} for key, value in keys.items()] + [{"messages": [one]} for one in messages]
        wanted = [f"body.{key}" for key in keys]
        wanted += ["body.messages[0].content"] * len(parts) + ["body.messages[0].image_url"]
        assert [error["param"] for error in refusals(service, bodies_)] == wanted
        try:
            caller = listener.accept()
        except BlockingIOError:
            caller = None
        assert caller is None, "somebody called the address in a request"


def test_case_68_engine_keys_are_not_forwarded(service: Service) -> None:
    """Keys that steer the engine, its templates or its grammars are refused by line and name."""
    refused_keys(service, [{key: value} for key, value in STEERING.items()])


def test_case_69_message_content(service: Service) -> None:
    """Text parts count whole, the roles of a text chat work; every other content, role or empty list is refused."""
    user: dict[str, Any] = {"role": "user"}
    wrong: dict[str, list[Any]] = {
        "body.messages[0].content": [
            [user | {"content": []}],
            [user | {"content": None}],
            [user],
            [user | {"content": [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]}],
            [user | {"content": ["a"]}],
            [user | {"content": [{"type": "text"}]}],
            [user | {"content": 7}],
        ],
        "body.messages[0].role": [
            [{"role": "tool", "content": "a", "tool_call_id": None}],
            [{"role": "function", "content": "a"}],
            [{"content": "a"}],
        ],
        "body.messages[0].tool_calls": [[{"role": "assistant", "content": "a", "tool_calls": [{}]}]],
        "body.messages[0]": [["a"]],
        "body.messages": [[], "a", {}, None],
    }
    given = [(param, messages) for param, some in wrong.items() for messages in some]
    errors = refusals(service, [{"messages": messages} for _, messages in given])
    for (param, messages), error in zip(given, errors, strict=True):
        assert error["param"] == param, (messages, error)
    parts = [{"type": "text", "text": "Say apple"}, {"type": "text", "text": "and then pear"}]
    good: dict[str, list[dict[str, Any]]] = {
        "parts": [user | {"content": parts}],
        "first": [user | {"content": parts[:1]}],
        "joined": [user | {"content": "Say apple\nand then pear"}],
        "developer": [{"role": "developer", "content": "Be short."}, user | {"content": "Hi"}],
        "system": [{"role": "system", "content": "Be short."}, user | {"content": "Hi"}],
        "undeveloped": [user | {"content": "Hi"}],
        "named": [user | {"content": "Hi", "name": "ann"}, {"role": "assistant", "content": "Ho"}],
    }
    ended = service.run([service.chat_line(name, messages=messages) for name, messages in good.items()])
    prompts = {name: body["usage"]["prompt_tokens"] for name, body in bodies(ended).items()}
    assert prompts.keys() == good.keys()
    assert prompts["first"] < prompts["parts"]
    assert abs(prompts["parts"] - prompts["joined"]) <= 2, "a part was dropped"
    assert prompts["developer"] == prompts["system"], "a developer's text was dropped"
