"""Makes the bucket of ``GRIDLINE_STORE_URL`` on a store of one's own: ``python -m gridline.operate.bucket``.

Never run where buckets are someone else's to make: a misspelt name would be made too.
"""

import sys
from urllib.parse import urlsplit

import boto3
from botocore.exceptions import ClientError

from gridline.settings import settings

MISSING = "404"


def main() -> None:
    """Make it unless it is there; endpoint, region and credentials come from the usual AWS_ names."""
    name = urlsplit(settings().objects_url).netloc
    s3 = boto3.client("s3")
    try:
        s3.head_bucket(Bucket=name)
    except ClientError as error:
        if error.response["Error"]["Code"] != MISSING:
            raise
        s3.create_bucket(Bucket=name)
        sys.stdout.write(f"Made the bucket {name}.\n")


if __name__ == "__main__":
    main()
