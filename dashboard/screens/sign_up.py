"""Signing up, for somebody who is signed in already: there is nothing to do, so the first page follows."""

import streamlit as st

st.switch_page("screens/overview.py")
