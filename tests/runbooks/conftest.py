"""One stack for all runbooks, and an operator signed in to it."""

from collections.abc import Iterator

import pytest

from tests.runbooks.bench import Platform, running_platform
from tests.runbooks.browsing import Operator


@pytest.fixture(scope="session")
def whole_platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """The running platform."""
    with running_platform(tmp_path_factory.mktemp("engines")) as one:
        yield one


@pytest.fixture
def platform(whole_platform: Platform) -> Iterator[Platform]:
    """The running platform; what the test broke is put right after it."""
    yield whole_platform
    whole_platform.put_right()


@pytest.fixture(scope="session")
def signed_in(whole_platform: Platform, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """Olga, an operator, in her browser."""
    olga = Operator(whole_platform.stack, "olga", tmp_path_factory.mktemp("olga"))
    try:
        olga.sign_in_here()
        yield olga
    finally:
        olga.driver.quit()


@pytest.fixture
def operator(signed_in: Operator, platform: Platform) -> Operator:
    """Olga, on the platform as it is put right."""
    return signed_in
