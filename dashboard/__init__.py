"""The customers' pages, in Streamlit, over HTTP only: they import ``gridline.client`` and know no database."""
