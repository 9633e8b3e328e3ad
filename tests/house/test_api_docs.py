"""docs/api.md lists the routes that the code serves, and the wait reasons and statuses that it knows."""

import re

from api.app import OWN_PATH, create_app
from gridline.batches.reasons import ReasonCode
from gridline.batches.states import TERMINAL
from gridline.profiles.profile import load
from gridline.settings import Settings

OPEN = {
    "GET /healthz", "GET /readyz", "GET /metrics", "GET /docs", "GET /openapi.json", "GET /gridline/v1/pricing",
    "GET /gridline/v1/platform",
    "POST /gridline/v1/users", "POST /gridline/v1/sessions", "POST /gridline/v1/sessions/identity",
}  # fmt: skip
PARTS = {"GET /docs/{id}"}
"""What a page loads by itself: nobody calls it."""
LATER: set[ReasonCode] = set()
"""Codes that nobody sets yet: the page does not promise them."""


def served() -> set[str]:
    """Method and path of every route there may be, OpenAI's without its base path, parameters as ``{id}``."""
    profile = load("gridline")
    believing = Settings(oidc_issuer="https://id.example", oidc_client_id="gridline")
    found = set()
    for rule in create_app(profile, config=believing).url_map.iter_rules():
        path = rule.rule
        for base in profile.base_paths:
            path = path.removeprefix(base)
        path = re.sub(r"<[^>]+>", "{id}", path)
        found |= {f"{method} {path}" for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}}
    return found


def test_every_route_is_documented(texts: dict[str, str]) -> None:
    """The table of calls is the routes, no more and no fewer; each names its scope."""
    page = texts["docs/api.md"]
    rows = re.findall(r"^\| (`(?:GET|POST|DELETE) .*?) \|.*\| (\S+) \|$", page, re.MULTILINE)
    told = {call for cell, _ in rows for call in re.findall(r"`([A-Z]+ [^`]+)`", cell)}
    assert told == served() - OPEN - PARTS
    assert all(f"`{call.split()[1]}`" in page for call in OPEN)
    assert {scope for _, scope in rows} == {"read", "routing:write", "session"}
    assert OWN_PATH in page


def test_every_wait_reason_is_documented(texts: dict[str, str]) -> None:
    """Each reason that a batch can show stands in the table of reasons."""
    told = set(re.findall(r"^\| `([a-z_]+)` \|", texts["docs/api.md"], re.MULTILINE))
    assert told >= set(ReasonCode) - LATER
    assert told.isdisjoint(LATER)


def test_a_reason_is_promised_as_soon_as_it_is_set(texts: dict[str, str]) -> None:
    """A code that the page leaves out is one that no file but the list of reasons names."""
    named = {
        code: [
            path
            for path, text in texts.items()
            if path.startswith("gridline/") and path.endswith(".py") and f"ReasonCode.{code.name}" in text
        ]
        for code in LATER
    }
    assert {code: paths for code, paths in named.items() if paths != ["gridline/batches/reasons.py"]} == {}


def test_every_end_is_documented(texts: dict[str, str]) -> None:
    """Each terminal status says which files it leaves and what it charges."""
    ends = texts["docs/api.md"].partition("\n## Ends\n")[2].partition("\n## ")[0]
    told = set(re.findall(r"^\| `([a-z]+)` \|", ends, re.MULTILINE))
    assert told == set(TERMINAL)
