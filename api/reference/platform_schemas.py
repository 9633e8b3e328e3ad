"""What the call about the platform gives."""

from api.reference.shapes import Schema, choice, constant, flag, listed, text, thing, whole
from gridline.profiles.profile import Profile


def schemas(profile: Profile) -> dict[str, Schema]:
    """Components by name."""
    keys = {
        "object": constant("gridline.platform", "Always `gridline.platform`."),
        "dialect": text("Its name.", profile.name),
        "base_paths": listed(
            text("A path.", profile.base_paths[0]), "Where OpenAI's resources are; the first one is meant."
        ),
        "endpoints": listed(choice("An endpoint.", profile.endpoints), "Where a batch's lines may go."),
        "completion_windows": listed(choice("A window.", profile.windows), "What a batch may have."),
        "file_bytes_max": whole("The most bytes of a file.", profile.file_bytes_max),
        "file_requests_max": whole("The most requests of a file.", profile.file_lines_max),
        "extension": text("The key of what batches and models have beside OpenAI's.", profile.extension),
        "sign_in": thing(
            "How customers sign in.",
            {
                "password": flag("With e-mail and password.", example=True),
                "identity_provider": flag(
                    "With an OpenID Connect provider that the operator chose; only then there is "
                    "`POST /gridline/v1/sessions/identity`.",
                    example=False,
                ),
            },
        ),
    }
    return {"Platform": thing("What the platform takes: its dialect of the API.", keys)}
