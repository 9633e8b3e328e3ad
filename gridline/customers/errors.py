"""Errors of accounts, users and tokens."""

from gridline.errors import Conflict, InvalidRequest, NotAuthenticated, NotPermitted


class AccountNameTaken(InvalidRequest):
    """Raised when another account has the name already."""

    default_code = "account_name_taken"


class ScopeUnknown(InvalidRequest):
    """Raised when a token is asked for with a scope that no route knows, or with none."""

    default_code = "invalid_value"


class SignUpClosed(NotPermitted):
    """Raised when this platform lets nobody sign up by themselves."""

    default_code = "sign_up_closed"


class EmailTaken(Conflict):
    """Raised when an e-mail has a user already, whose password is another one."""

    default_code = "email_taken"


class CredentialsWrong(NotAuthenticated):
    """Raised when no user has this e-mail and this password: the same for either."""

    default_code = "invalid_credentials"
