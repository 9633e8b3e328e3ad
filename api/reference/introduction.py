"""The words at the top of the reference, and its chapters in the order of a customer's way."""

from gridline.profiles.profile import Profile

TAGS = {
    "Files": "Inputs that you upload, outputs and error files that batches write.",
    "Uploads": "A file in parts, for SDKs' chunked uploads.",
    "Batches": "Create one, follow it, cancel it.",
    "Models": "What can be named in a line, with limits and prices.",
    "Account": "What OpenAI lacks: limits and credits, receipts, what happened to a batch.",
    "Credits": "What things cost, what a batch would cost, and everything that moved the account's credits.",
    "Webhooks": "Addresses of yours that hear of ended batches, so that nobody has to poll.",
    "Access": "Sign up, sign in, make and revoke tokens. A token opens none of these calls, a session opens all others too.",
    "Platform": "For monitors and tools. No token.",
}


def introduction(profile: Profile) -> str:
    """The words at the top, in Markdown, with the address that the dialect has."""
    waits = _WAITS.replace("EXTENSION", profile.extension) if "reason" in profile.batch_facts else ""
    return _WORDS.replace("BASE_PATH", profile.base_paths[0]).replace("WAITS", waits)


_WAITS = """\
- **A batch that waits says why**, in `EXTENSION.reason`, and what helps. Do not send it again: it goes on by itself.
"""


_WORDS = """\
Upload a JSONL file of requests, create a batch, look at it until it has ended, download the results: with OpenAI's SDKs as
they are, the base URL and the key changed.

```python
from openai import OpenAI

client = OpenAI(base_url="http://127.0.0.1:8000BASE_PATH", api_key="gl_live_…", timeout=60)
file = client.files.create(file=open("requests.jsonl", "rb"), purpose="batch")
batch = client.batches.create(
    input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
)
```

WAITS- **Match results by `custom_id`.** Output lines stand in the order of the input; lines without an answer are in the error
  file.
- **Every answer has `x-request-id`.** Every refusal is OpenAI's error object; `code` is what to decide by.
- **Retries are safe with an `Idempotency-Key`** on a create. `x-should-retry: false` means that trying again cannot help.
- Objects may gain keys with a release. Unknown keys in a request are refused, never ignored.

What comes before a call's own refusals: 404 `unknown_url` for an address that is none, 405 `method_not_allowed`, and 400,
413 or 431 for what cannot be read as HTTP. Nothing redirects.
"""
