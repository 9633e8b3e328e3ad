"""All components of the document, and an example of each, put together from the examples of its keys."""

from collections.abc import Mapping
from typing import Any

from api.reference import (
    access_schemas,
    account_schemas,
    batch_schemas,
    credit_schemas,
    file_schemas,
    line_schemas,
    notice_schemas,
    platform_schemas,
    result_schemas,
    upload_schemas,
    wait_schemas,
)
from api.reference.shapes import Schema
from gridline.profiles.profile import Profile


def components(profile: Profile, *, identities: bool) -> dict[str, Schema]:
    """Every schema by its name, as the dialect has it; ``identities``: where an identity provider is believed."""
    return {
        **file_schemas.schemas(profile),
        **upload_schemas.schemas(profile),
        **batch_schemas.schemas(profile),
        **account_schemas.schemas(profile),
        **credit_schemas.schemas(profile),
        **line_schemas.schemas(profile),
        **notice_schemas.schemas(),
        **platform_schemas.schemas(profile),
        **result_schemas.schemas(profile),
        **wait_schemas.schemas(),
        **access_schemas.schemas(identities=identities),
    }


def example_of(schema: Schema, known: Mapping[str, Schema]) -> Any:
    """A value that fits: the schema's own example, or one made of the examples of its parts.

    Raises:
        LookupError: there is nothing to make one of.
    """
    match schema:
        case {"examples": [example, *_]} | {"const": example}:
            return example
        case {"$ref": str(address)}:
            return example_of(known[address.rpartition("/")[2]], known)
        case {"oneOf": [first, *_]} | {"anyOf": [first, *_]}:
            return example_of(first, known)
        case {"properties": dict(keys)}:
            return {name: example_of(one, known) for name, one in keys.items()}
        case {"items": dict(item)}:
            return [example_of(item, known)]
    raise LookupError(schema)
