"""Where every object lives: the only file that knows keys.

files/<account>/<file>                                  input, output and error files
uploads/<account>/<upload>/<part>                       a part of a file that comes in parts, until the file is whole
adapters/<account>/<short id>                           weights of a fine-tuned model
batches/<batch>/refused.parquet                         lines refused before the engine
batches/<batch>/cause.json                              what lines without a result get, written once
batches/<batch>/collation.json                          figures of the result files, written once
batches/<batch>/requests.parquet                        what the request log keeps of each line, written once
batches/<batch>/parts/<n>/lines.parquet, spec.json      what a GPU job reads
batches/<batch>/parts/<n>/manifest.json                 which segment's lines count, written once
batches/<batch>/parts/<n>/attempts/<k>-<lease>/         one attempt: seg-*.parquet, progress.json, stop.json
"""

FILES, UPLOADS, ADAPTERS, BATCHES = "files/", "uploads/", "adapters/", "batches/"
"""Every object's key begins with one of these."""
_PLACES = {FILES: 2, UPLOADS: 2, ADAPTERS: 2, BATCHES: 1}


def owner_id(key: str) -> str | None:
    """Id of the file, upload, adapter or batch that an object belongs to; None for a key that no row could name."""
    parts = key.split("/")
    place = _PLACES.get(f"{parts[0]}/")
    return parts[place] if place is not None and len(parts) > place else None


def file_key(account_id: str, file_id: str) -> str:
    """A customer's file."""
    return f"files/{account_id}/{file_id}"


def upload_prefix(account_id: str, upload_id: str) -> str:
    """Every part of an upload; deleted when it has ended."""
    return f"uploads/{account_id}/{upload_id}/"


def upload_part_key(account_id: str, upload_id: str, part_id: str) -> str:
    """One part of an upload."""
    return f"{upload_prefix(account_id, upload_id)}{part_id}"


def adapter_key(account_id: str, short_id: str) -> str:
    """The weights of a fine-tuned model."""
    return f"adapters/{account_id}/{short_id}"


def batch_prefix(batch_id: str) -> str:
    """Everything of a batch but its files; deleted some time after its end."""
    return f"batches/{batch_id}/"


def refused_key(batch_id: str) -> str:
    """Lines that validation refused one by one, as result rows."""
    return f"batches/{batch_id}/refused.parquet"


def cause_key(batch_id: str) -> str:
    """Code and message of the lines that have no result."""
    return f"batches/{batch_id}/cause.json"


def collation_key(batch_id: str) -> str:
    """The figures of the collated files."""
    return f"batches/{batch_id}/collation.json"


def requests_key(batch_id: str) -> str:
    """What the request log keeps of each line."""
    return f"batches/{batch_id}/requests.parquet"


def partition_prefix(batch_id: str, partition: int) -> str:
    """Everything of one partition."""
    return f"batches/{batch_id}/parts/{partition:04d}/"


def partition_lines_key(batch_id: str, partition: int) -> str:
    """The partition's lines, in input order."""
    return f"{partition_prefix(batch_id, partition)}lines.parquet"


def partition_spec_key(batch_id: str, partition: int) -> str:
    """What a GPU job must know about the partition."""
    return f"{partition_prefix(batch_id, partition)}spec.json"


def manifest_key(batch_id: str, partition: int) -> str:
    """Which segments' lines count; once it stands, later segments never do."""
    return f"{partition_prefix(batch_id, partition)}manifest.json"


def attempts_prefix(batch_id: str, partition: int) -> str:
    """All attempts at the partition."""
    return f"{partition_prefix(batch_id, partition)}attempts/"


def attempt_prefix(batch_id: str, partition: int, attempt: int, lease_id: str) -> str:
    """One attempt under its lease: nobody else ever writes there."""
    return f"{attempts_prefix(batch_id, partition)}{attempt:04d}-{lease_id}/"


def lease_of(attempt_prefix: str) -> str:
    """The lease that an attempt's folder was made for."""
    return attempt_prefix.rstrip("/").rpartition("-")[2]


def segment_key(prefix: str, number: int) -> str:
    """One closed segment of an attempt."""
    return f"{prefix}seg-{number:06d}.parquet"


def is_segment(key: str) -> bool:
    """Whether a key of an attempt is one of its segments."""
    return key.rpartition("/")[2].startswith("seg-")


def segment_number(key: str) -> int:
    """A segment's number within its attempt, from 0, in the order in which they are closed."""
    return int(key.rpartition("/seg-")[2].removesuffix(".parquet"))


def progress_key(prefix: str) -> str:
    """The attempt's progress, which is also its heartbeat."""
    return f"{prefix}progress.json"


def stop_key(prefix: str) -> str:
    """The platform's word to the attempt that it must stop."""
    return f"{prefix}stop.json"
