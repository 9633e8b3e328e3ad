"""What this platform takes, for anybody: the dialect that it speaks, as programs need to know it. No customer's data."""

from flask import Blueprint, Response, current_app, jsonify

from api import identities
from api.reference.operations import operation
from gridline.profiles.profile import Profile

KEPT_SECONDS = 60

blueprint = Blueprint("platform", __name__)


@blueprint.get("/platform")
@operation(
    "Platform",
    "readPlatform",
    "Look at what the platform takes",
    returns="Platform",
    sends=("Cache-Control",),
)
def show_platform() -> Response:
    """Where OpenAI's resources are, the endpoints, windows and files that batches may have, how to sign in. Needs no token."""
    profile: Profile = current_app.config["PROFILE"]
    answer = jsonify(
        object="gridline.platform",
        dialect=profile.name,
        base_paths=profile.base_paths,
        endpoints=profile.endpoints,
        completion_windows=profile.windows,
        file_bytes_max=profile.file_bytes_max,
        file_requests_max=profile.file_lines_max,
        extension=profile.extension,
        sign_in={"password": True, "identity_provider": identities.offered(current_app)},
    )
    answer.headers["Cache-Control"] = f"public, max-age={KEPT_SECONDS}"
    return answer
