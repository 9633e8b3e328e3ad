"""The page of fine-tuned models, on the live API."""

import pytest

from tests.api.conftest import (
    Customer,
    address,
    ann,
    bob,
    database,
    pepper,
    qualified,
    shared_database,
    windows,
)
from tests.api.test_models import imported
from tests.dashboard.conftest import SignIn, text_of

__all__ = ["address", "ann", "bob", "database", "pepper", "qualified", "shared_database", "windows"]

pytestmark = pytest.mark.programs


def test_an_account_sees_its_own_alone(
    sign_in: SignIn, address: str, ann: Customer, bob: Customer, qualified: None
) -> None:
    """Ann's model is listed with its base and rank and a line that names it; Bob is told how to get one."""
    model = imported(ann, "tickets")
    page = sign_in(address, ann.token).run("fine_tuned")
    table = page.dataframe[0].value.set_index("Model")
    assert (table.loc[model, "Base"], table.loc[model, "Rank"]) == ("smollm2-135m-instruct", 8)
    assert f'"model": "{model}"' in page.code[0].value
    shown = text_of(sign_in(address, bob.token).run("fine_tuned"))
    assert "No fine-tuned model yet" in shown
    assert model not in shown
