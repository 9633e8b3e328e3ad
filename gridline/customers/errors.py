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
    """Raised when an e-mail has a user already, who is not known to be the same person."""

    default_code = "email_taken"


class IdTokenRefused(NotAuthenticated):
    """Raised when an ID token is not the identity provider's, for this platform, of this sign-in and of now."""

    default_code = "invalid_id_token"


class EmailNotVerified(NotPermitted):
    """Raised when the identity provider does not say that the e-mail is the user's."""

    default_code = "email_not_verified"


class CredentialsWrong(NotAuthenticated):
    """Raised when no user has this e-mail and this password: the same for either."""

    default_code = "invalid_credentials"
