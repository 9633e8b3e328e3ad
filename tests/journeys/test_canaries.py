"""What customers send and receive stands in no log, no XCom and no folder but the store's: a whole trip, then a search."""

import json
import re
import secrets
import subprocess
from pathlib import Path

import httpx
import openai
import psycopg
import pytest

from gridline.operate.stack.airflow_environment import airflow_database_url
from gridline.operate.stack.places import Places
from gridline.settings import ROOT
from tests.stack import Customer, Stack, chat_line

pytestmark = [pytest.mark.stack, pytest.mark.timeout(600)]


def walk(customer: Customer, word: str) -> list[str]:
    """Good, bad, refused and wrong calls that carry the word everywhere a customer can put text."""
    line = chat_line(0, f"Repeat this word: {word}", tokens=24, user=f"user-{word}")
    good = customer.create([{**line, "custom_id": f"id-{word}"}])
    bad = {**line, "body": {**line["body"], "temperature": word, f"key-{word}": 1}}
    ended = customer.finished(good.id)
    assert ended.status == "completed"
    answers = customer.lines(ended.output_file_id)
    failed = customer.finished(customer.create([bad, word, f'{{"a": "{word}'.ljust(40)]).id)
    assert failed.status == "failed"
    http = httpx.Client(
        base_url=customer.url, headers={"Authorization": f"Bearer {customer.token}"}, timeout=60
    )
    with http:
        http.post("/v1/files", data={"purpose": "batch"}, files={"file": (f"{word}.txt", word.encode())})
        http.post("/v1/files", data={"purpose": word}, files={"file": (f"{word}.jsonl", word.encode())})
        http.post("/v1/batches", json={"input_file_id": word, word: word, "metadata": {word: [word]}})
        http.post("/v1/batches", content=f'{{"{word}'.encode(), headers={"Content-Type": "application/json"})
        http.post("/v1/batches", json={}, headers={"Idempotency-Key": word * 20, "User-Agent": word})
        http.get(f"/v1/batches/{word}?after={word}&limit={word}")
        http.get("/v1/files", headers={"Authorization": f"Bearer gl_live_{word}"})
        http.request(word, f"/{word}")
    with pytest.raises(openai.NotFoundError):
        customer.openai.batches.retrieve(f"batch_{word}")
    return [str(answers[0]["response"]["body"]["choices"][0]["message"]["content"])]


def searched(stack: Stack) -> list[Path]:
    """Every folder that programs write to, but for the store, the database's own files and the models."""
    state = stack.config.state_dir
    kept = {"objects", "postgres", "models", "secrets"}
    return [one for one in state.iterdir() if one.name not in kept] + [
        ROOT / "logs",
        Places(stack.config).logs,
    ]


def found(words: list[str], folders: list[Path]) -> list[str]:
    """Files below the folders that hold one of the words."""
    patterns = [argument for word in words for argument in ("-e", word)]
    done = subprocess.run(
        ["grep", "--recursive", "--files-with-matches", "--fixed-strings", "--text", *patterns, *map(str, folders)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout.splitlines()


def test_no_log_and_no_xcom_holds_what_customers_sent(stack: Stack) -> None:
    """Token, prompt, answer, file name, metadata and odd headers are in no log (at DEBUG), task log or XCom."""
    assert stack.config.log_level == "DEBUG"
    customer = stack.customer("canary")
    word = f"canary{secrets.token_hex(6)}"
    answers = walk(customer, word)
    words = [word, customer.token, *(one for one in answers if len(one) > 12)]
    assert found([customer.token], [stack.config.state_dir]) == []
    assert found(words, searched(stack)) == []
    url = re.sub(r"^postgresql\+\w+", "postgresql", airflow_database_url(stack.config))
    with psycopg.connect(url) as connection:
        for table in ("xcom", "task_instance", "dag_run", "log", "rendered_task_instance_fields"):
            rows = connection.execute(f"SELECT row_to_json(t)::text FROM {table} t").fetchall()
            held = [row for (row,) in rows if any(json.dumps(one)[1:-1] in row for one in words)]
            assert held == [], table
