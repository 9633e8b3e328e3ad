"""The reference: the OpenAPI document that the code makes of itself, and the page that shows it."""
