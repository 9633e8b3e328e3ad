"""The account's fine-tuned models: their ids, their bases, and how a line names one."""

from typing import TYPE_CHECKING

import streamlit as st

from dashboard import live
from gridline.client import Client, ModelInfo

if TYPE_CHECKING:
    import pandas as pd

LINE = """{{"custom_id": "1", "method": "POST", "url": "/v1/chat/completions", "body": {{"model": "{model}", \
"messages": [{{"role": "user", "content": "Hello"}}]}}}}"""


def main() -> None:
    """Draw the page."""
    st.title("Fine-tuned models", anchor=False)
    live.follow(_load, _draw, active=lambda _models: False, failed=live.could_not_load)


def _load(client: Client) -> tuple[ModelInfo, ...]:
    return tuple(one for one in client.models() if one.adapter is not None)


def _draw(models: tuple[ModelInfo, ...]) -> None:
    if not models:
        with st.container(border=True):
            st.subheader("No fine-tuned model yet", anchor=False)
            st.write(
                "An operator imports a LoRA adapter that you trained (PEFT, safetensors) and gives it to your account. It "
                "costs what its base costs."
            )
        return
    st.dataframe(frame(models), hide_index=True)
    st.write(
        "A line names the model by its id. One batch may mix a base with up to 8 fine-tuned models of that base."
    )
    st.code(LINE.format(model=models[0].id), language="json", wrap_lines=True)


def frame(models: tuple[ModelInfo, ...]) -> "pd.DataFrame":
    """The models as a table."""
    import pandas as pd

    rows = [
        {
            "Model": one.id,
            "Base": one.adapter.base,
            "Rank": one.adapter.rank,
            "Since (UTC)": f"{one.created_at:%Y-%m-%d}" if one.created_at else "",
            "To know": one.adapter.note,
        }
        for one in models
        if one.adapter is not None
    ]
    return pd.DataFrame(rows)


main()
