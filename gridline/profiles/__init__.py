"""The dialects of the API, as data: what differs between them is in the files beside this one."""
