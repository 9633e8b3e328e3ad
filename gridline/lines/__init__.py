"""JSONL lines in and out: reading, checking, partitions, sealing and collating."""
