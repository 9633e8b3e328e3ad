"""Answers as JSON: what the standard library would write, byte for byte, only faster."""

import json

from flask import Flask

from api.answers import Answers

VALUES = [
    {"z": 1, "a": [None, True, False, "é漢🎉", "\u2028", 'quote " and \\ slash', "\x00\x1f\x7f"], "m": {}},
    {"big": 2**63 - 1, "negative": -(10**18), "money": "0.000000001", "real": 0.1, "zero": 0.0},
    [],
    {"nested": [[[{"deep": {"deeper": [1, 2, 3]}}]]]},
]


def test_answers_are_written_as_the_standard_library_writes_them() -> None:
    """Keys in their order, nothing escaped that need not be, no spaces, one line."""
    app = Flask("answers")
    answers = Answers(app)
    with app.app_context():
        for value in VALUES:
            answer = answers.response(value)
            assert answer.mimetype == "application/json"
            expected = json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"
            assert answer.get_data() == expected.encode()
