"""The typed HTTP client that the dashboard and the command line share."""

from gridline.client.batch import Batch, Counts, LineError, Wait
from gridline.client.errors import ClientError
from gridline.client.http import Client, Download
from gridline.client.objects import (
    Account,
    Event,
    FileInfo,
    Limit,
    ModelInfo,
    Page,
    Receipt,
    Results,
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
    "Limit",
    "LineError",
    "ModelInfo",
    "Page",
    "Receipt",
    "Results",
    "Wait",
]
