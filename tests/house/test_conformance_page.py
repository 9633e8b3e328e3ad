"""docs/conformance.md is what the suite in tests/conformance says of itself, case by case."""

from tests.conformance import page


def test_the_page_is_the_suite(texts: dict[str, str]) -> None:
    """Every case stands on the page with its promise, its client and its sources; `make conformance` writes it anew."""
    passed = {one.name: page.PASSED for one in page.cases()}
    assert texts["docs/conformance.md"] == page.render(dict.fromkeys(page.dialects(), passed))


def test_every_numbered_case_has_a_source() -> None:
    """A case without a source, and a source without its case, are faults of the suite."""
    numbers = {one.number for one in page.cases() if one.number}
    assert numbers == set(page.sources())
