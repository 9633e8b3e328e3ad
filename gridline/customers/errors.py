"""Errors of accounts and tokens."""

from gridline.errors import InvalidRequest


class AccountNameTaken(InvalidRequest):
    """Raised when another account has the name already."""

    default_code = "account_name_taken"


class ScopeUnknown(InvalidRequest):
    """Raised when a token is asked for with a scope that no route knows, or with none."""

    default_code = "invalid_value"
