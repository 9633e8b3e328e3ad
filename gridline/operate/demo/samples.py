"""The demo's lines: eight questions and four sentences, as files of a batch."""

import json

CHAT_MODEL = "smollm2-135m-instruct"
EMBEDDING_MODEL = "all-minilm-l6-v2"

CHAT_LINES = (
    "What is the capital of France?",
    "Name three colours of the rainbow.",
    "What is the opposite of hot?",
    "How many days does a week have?",
    "Write one sentence about the sea.",
    "What do bees make?",
    "Which planet do we live on?",
    "Say hello in Spanish.",
)
EMBEDDING_LINES = (
    "The cat sat on the mat.",
    "A dog slept by the fire.",
    "Prices rose by two percent in March.",
    "The train to Lyon leaves at noon.",
)
OUTPUT_TOKENS_MAX = 40


def chat_file() -> bytes:
    """One request a question, greedy."""
    return _file(
        "chat",
        "/v1/chat/completions",
        [
            {
                "model": CHAT_MODEL,
                "messages": [{"role": "user", "content": text}],
                "temperature": 0,
                "max_tokens": OUTPUT_TOKENS_MAX,
            }
            for text in CHAT_LINES
        ],
    )


def embedding_file() -> bytes:
    """One request a sentence."""
    bodies: list[dict[str, object]] = [{"model": EMBEDDING_MODEL, "input": text} for text in EMBEDDING_LINES]
    return _file("embedding", "/v1/embeddings", bodies)


def _file(name: str, url: str, bodies: list[dict[str, object]]) -> bytes:
    lines = [
        {"custom_id": f"{name}-{number}", "method": "POST", "url": url, "body": body}
        for number, body in enumerate(bodies, start=1)
    ]
    return "".join(json.dumps(line) + "\n" for line in lines).encode()
