"""Whose page this is: the session of the browser's cookie, looked up again on every run of a page or fragment."""

import streamlit as st

from dashboard.entrance import PROBLEM
from dashboard.sessions import COOKIE, SESSIONS, Session
from gridline.client import Client, ClientError
from gridline.settings import settings


def cookie() -> str:
    """The session's id as the browser sent it when it connected; "" without one."""
    return st.context.cookies.get(COOKIE, "")


def session() -> Session | None:
    """The visitor's session while it is good."""
    return SESSIONS.find(cookie())


def client() -> Client:
    """The API as the visitor's account; a fragment whose session has ended starts the whole page anew.

    No answer is cached anywhere: what one account reads is never at hand for another.
    """
    found = session()
    if found is None:
        st.rerun()
    return found.client


def base_url() -> str:
    """What the visitor's SDK is given as its base URL: the public address, also where the pages take another way."""
    return settings().public_api_url + client().openai_path


def check_refusal(error: ClientError) -> None:
    """When the API no longer takes the token, end the session and show the sign-in page."""
    if error.token_refused:
        SESSIONS.end(cookie())
        st.query_params[PROBLEM] = "signed_out"
        st.rerun()
