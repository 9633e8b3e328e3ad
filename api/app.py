"""Builds the application: routes under the dialect's base paths, ids and figures on every answer, JSON errors."""

from flask import Flask

from api import (
    account,
    answers,
    batches,
    budget,
    errors,
    estimates,
    explained,
    files,
    health,
    identities,
    mail_notices,
    messages,
    models,
    platform,
    pricing,
    rates,
    request_log,
    results,
    sessions,
    statements,
    tokens,
    tracing,
    uploads,
    waits,
    webhooks,
)
from api.reference import pages
from gridline.profiles.profile import Profile, current
from gridline.settings import Settings, settings

OWN_PATH = "/gridline/v1"
"""Everything that OpenAI lacks lives under this path, whatever the dialect."""


def create_app(profile: Profile | None = None, *, config: Settings | None = None) -> Flask:
    """The WSGI application, speaking ``profile`` (by default the one that GRIDLINE_PROFILE names).

    ``config`` says whose identities are believed; by default the process's settings do.
    """
    app = Flask("gridline", static_folder=None)
    profile = profile or current()
    app.config.update(
        PROFILE=profile,
        PROPAGATE_EXCEPTIONS=False,
        # A browser's preflight gets no yes from us, and nobody gets an empty 200.
        PROVIDE_AUTOMATIC_OPTIONS=False,
    )
    app.json = answers.Answers(app)
    # A redirect can lose the body or the token: a doubled slash is a 404.
    app.url_map.merge_slashes = False
    tracing.install(app)
    errors.install(app)
    rates.install(app)
    sessions.welcome_nanos()  # a setting that cannot be used is said at the start, not to the first customer
    for number, base in enumerate(profile.base_paths):
        for blueprint in (files.blueprint, uploads.blueprint, batches.blueprint, models.blueprint):
            app.register_blueprint(blueprint, url_prefix=base, name=f"{blueprint.name}{number}")
    for one in (
        account,
        budget,
        explained,
        results,
        statements,
        estimates,
        platform,
        pricing,
        waits,
        webhooks,
        messages,
        mail_notices,
        sessions,
        tokens,
    ):
        app.register_blueprint(one.blueprint, url_prefix=OWN_PATH)
    if profile.request_log_days:
        app.register_blueprint(request_log.blueprint, url_prefix=OWN_PATH)
    app.register_blueprint(sessions.entrance, url_prefix=OWN_PATH)
    identities.install(app, config or settings(), OWN_PATH)
    app.register_blueprint(health.blueprint)
    app.register_blueprint(pages.blueprint)
    return app
