"""Reads a request's head: what cannot be read is a 400 like every other, where waitress would drop the connection."""

from waitress.parser import HTTPRequestParser, ParsingError


class Head(HTTPRequestParser):  # type: ignore[misc] # waitress ships no types
    """waitress's reader, which lets through what ``urllib`` says of an address such as ``http://[::1``."""

    def parse_header(self, header_plus: bytes) -> None:
        """Take the head's bytes."""
        try:
            super().parse_header(header_plus)
        except ValueError as error:
            raise ParsingError("Bad URI") from error
