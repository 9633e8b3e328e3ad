"""The failed lines of a batch as an input file of their own: the requests as they were, in their order."""

import json
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from gridline.client.batch import Batch
from gridline.client.http import Client


def failed_ids(client: Client, batch: Batch) -> set[str]:
    """The custom_ids of the lines without a result; empty when every line has one."""
    if batch.error_file_id is None:
        return set()
    with client.download(batch.error_file_id) as content:
        return {json.loads(line)["custom_id"] for line in lines_of(content.chunks)}


def write_failed(client: Client, batch: Batch, wanted: set[str], file: BinaryIO) -> int:
    """Write the input lines with these custom_ids, in flat memory; how many."""
    found = 0
    for line in failed_lines(client, batch, wanted):
        file.write(line)
        found += 1
    return found


def failed_lines(client: Client, batch: Batch, wanted: set[str]) -> Iterator[bytes]:
    """The input lines with these custom_ids, each with its end, as they are read."""
    with client.download(batch.input_file_id) as content:
        for line in lines_of(content.chunks):
            if json.loads(line)["custom_id"] in wanted:
                yield line + b"\n"


def lines_of(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of a stream that are not blank, without their ends."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from (line for line in whole if line.strip())
    if rest.strip():
        yield rest
