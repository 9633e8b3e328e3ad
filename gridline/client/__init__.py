"""The typed HTTP client that the dashboard and the command line share."""

from gridline.client.errors import ClientError
from gridline.client.http import Client, Download
from gridline.client.objects import (
    Account,
    Batch,
    Counts,
    Event,
    FileInfo,
    LineError,
    ModelInfo,
    Page,
    Receipt,
    Wait,
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
    "LineError",
    "ModelInfo",
    "Page",
    "Receipt",
    "Wait",
]
