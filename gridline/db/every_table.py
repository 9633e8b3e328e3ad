"""Imports every room's tables, so that their foreign keys find each other. Tests hold it to the migrations."""

from gridline.batches import tables as batches
from gridline.capacity import tables as capacity
from gridline.catalog import tables as catalog
from gridline.customers import tables as customers
from gridline.db.base import Base
from gridline.files import tables as files
from gridline.ledger import tables as ledger
from gridline.notices import tables as notices
from gridline.proof import tables as proof
from gridline.usage import tables as usage

METADATA = Base.metadata
ROOMS = (batches, capacity, catalog, customers, files, ledger, notices, proof, usage)
