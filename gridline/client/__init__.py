"""The typed HTTP client that the dashboard and the command line share."""

from gridline.client.access import NewToken, SignedIn, Token
from gridline.client.batch import Batch, Counts, LineError, Wait
from gridline.client.errors import ClientError
from gridline.client.http import Client, Download
from gridline.client.objects import (
    Account,
    Event,
    FileInfo,
    Json,
    Limit,
    ModelInfo,
    Page,
    Platform,
    Receipt,
    Results,
    extension_of,
)

__all__ = [
    "Account",
    "Batch",
    "Client",
    "ClientError",
    "Counts",
    "Download",
    "Event",
    "FileInfo",
    "Json",
    "Limit",
    "LineError",
    "ModelInfo",
    "NewToken",
    "Page",
    "Platform",
    "Receipt",
    "Results",
    "SignedIn",
    "Token",
    "Wait",
    "extension_of",
]
