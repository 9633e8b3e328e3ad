"""What the body of a create may hold: types, keys, ranges, in OpenAI's words. Knows neither HTTP nor the database."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gridline import limits
from gridline.errors import InvalidRequest
from gridline.fields import bounded, keys_of, object_of, one_of, text_of
from gridline.files.retention import read_expires_after
from gridline.profiles.profile import Profile

KEYS = ("input_file_id", "endpoint", "completion_window", "metadata", "output_expires_after")
REQUIRED = KEYS[:3]
ESTIMATE_KEYS = REQUIRED
"""An estimate is asked for with what a create needs at least."""


@dataclass(frozen=True)
class CreateRequest:
    """A create that is right in itself; whether its file exists and fits is decided later."""

    input_file_id: str
    endpoint: str
    completion_window: str
    metadata: dict[str, str] | None = None
    output_expires_after_seconds: int | None = None


def parse_create(body: object, profile: Profile) -> CreateRequest:
    """The create that a JSON body asks for; null counts as absent.

    Raises:
        InvalidRequest: naming the first parameter that is missing, unknown, of the wrong type or out of range.
    """
    return _read(keys_of(body, known=KEYS, required=REQUIRED), profile)


def parse_estimate(body: object, profile: Profile) -> CreateRequest:
    """The create that a JSON body asks an estimate for.

    Raises:
        InvalidRequest: as ``parse_create``.
    """
    return _read(keys_of(body, known=ESTIMATE_KEYS, required=ESTIMATE_KEYS), profile)


def _read(given: Mapping[str, Any], profile: Profile) -> CreateRequest:
    return CreateRequest(
        input_file_id=_file_id(given["input_file_id"]),
        endpoint=one_of(given["endpoint"], profile.endpoints, "endpoint"),
        completion_window=one_of(given["completion_window"], profile.windows, "completion_window"),
        metadata=_metadata(given.get("metadata")),
        output_expires_after_seconds=read_expires_after(
            given.get("output_expires_after"), "output_expires_after"
        ),
    )


def _file_id(value: object) -> str:
    return bounded(text_of(value, "input_file_id"), limits.METADATA_KEY_CHARS_MAX, "input_file_id")


def _metadata(value: object) -> dict[str, str] | None:
    if value is None:
        return None
    pairs = object_of(value, "metadata")
    if len(pairs) > limits.METADATA_PAIRS_MAX:
        raise InvalidRequest(
            f"Invalid 'metadata': too many properties. Expected an object with at most "
            f"{limits.METADATA_PAIRS_MAX} properties, but got {len(pairs)} properties instead.",
            code="object_above_max_properties",
            param="metadata",
        )
    for key, text in pairs.items():
        bounded(key, limits.METADATA_KEY_CHARS_MAX, "metadata", what="key")
        bounded(text_of(text, f"metadata.{key}"), limits.METADATA_VALUE_CHARS_MAX, f"metadata.{key}")
    return dict(pairs)
