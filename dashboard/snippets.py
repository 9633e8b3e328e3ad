"""Code for a customer to copy: the same things in Python and with curl. Never with a real token in it."""

from gridline.settings import settings

FIRST_BATCH = """import json
from openai import OpenAI

client = OpenAI(base_url="{base}", api_key="<your token>", timeout=60)

lines = [
    {{
        "custom_id": f"question-{{number}}",
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": {{"model": "{model}", "messages": [{{"role": "user", "content": question}}]}},
    }}
    for number, question in enumerate(["What is the capital of France?"])
]
with open("questions.jsonl", "w") as out:
    out.writelines(json.dumps(line) + "\\n" for line in lines)

file = client.files.create(file=open("questions.jsonl", "rb"), purpose="batch")
batch = client.batches.create(
    input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
)
print(batch.id)"""

FOLLOW_PYTHON = """from openai import OpenAI

client = OpenAI(base_url="{base}", api_key="<your token>", timeout=60)

batch = client.batches.retrieve("{batch}")
print(batch.status, batch.request_counts)
if batch.output_file_id:
    client.files.content(batch.output_file_id).write_to_file("{batch}_output.jsonl")
if batch.error_file_id:
    client.files.content(batch.error_file_id).write_to_file("{batch}_errors.jsonl")"""

FOLLOW_CURL = """# export GRIDLINE_TOKEN=<your token>
curl --max-time 60 -H "Authorization: Bearer $GRIDLINE_TOKEN" \\
  {base}/batches/{batch}

# The receipt, once it has ended
curl --max-time 60 -H "Authorization: Bearer $GRIDLINE_TOKEN" \\
  {root}/gridline/v1/batches/{batch}/receipt"""


def environment(base_url: str) -> str:
    """What an SDK or the command line reads, for a shell; ``base_url`` is what SDKs are given as theirs."""
    return f'export OPENAI_BASE_URL="{base_url}"\nexport OPENAI_API_KEY="<your token>"'


def first_batch(base_url: str, model: str) -> str:
    """A first batch of one line, in Python."""
    return FIRST_BATCH.format(base=base_url, model=model)


def follow_python(base_url: str, batch_id: str) -> str:
    """Look at a batch and fetch its files, in Python."""
    return FOLLOW_PYTHON.format(base=base_url, batch=batch_id)


def follow_curl(base_url: str, batch_id: str) -> str:
    """Look at a batch and its receipt, with curl."""
    return FOLLOW_CURL.format(base=base_url, root=settings().public_api_url, batch=batch_id)
