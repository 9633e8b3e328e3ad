"""A small OpenID Connect provider on loopback: discovery, keys, the code flow with PKCE, and ID tokens good and bad."""

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from threading import Thread
from typing import Any
from urllib.parse import urlencode

from flask import Flask, Response, jsonify, redirect, request
from joserfc import jwt
from joserfc.jwk import ECKey, Key, RSAKey
from werkzeug.serving import make_server

from gridline.client.provider import DISCOVERY

CLIENT_ID, CLIENT_SECRET = "gridline", "hush-of-the-client"


@cache
def rsa(name: str) -> RSAKey:
    """A key of that name, made once a run: it takes a moment."""
    return RSAKey.generate_key(2048, {"kid": name, "use": "sig"})


@dataclass
class IdentityProvider:
    """What it serves; tests change it while it runs."""

    url: str = ""
    redirect_uri: str = ""
    keys: list[Key] = field(default_factory=lambda: [rsa("first")])
    # Who signs in, as claims; they may hold what a good provider would not say.
    person: dict[str, Any] = field(
        default_factory=lambda: {"sub": "1", "email": "ann@example.com", "email_verified": True}
    )
    # Put over what discovery and the token endpoint answer.
    described: dict[str, Any] = field(default_factory=dict)
    answered: dict[str, Any] = field(default_factory=dict)
    status: int = 200
    # Refuse at the authorization endpoint with this error.
    refusal: str = ""
    # Every path that was asked for, and the codes given out with what they were asked with.
    asked: list[str] = field(default_factory=list)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    issued: list[str] = field(default_factory=list)

    def claims(self, nonce: str = "n", **more: Any) -> dict[str, Any]:
        """What an ID token for the platform says; None leaves a claim out."""
        now = int(time.time())
        said = {"iss": self.url, "aud": CLIENT_ID, "iat": now, "exp": now + 300, "nonce": nonce}
        return {name: one for name, one in (said | self.person | more).items() if one is not None}

    def id_token(self, nonce: str = "n", *, key: Key | None = None, **more: Any) -> str:
        """A token signed with the provider's key, or another one."""
        by = key or self.keys[0]
        algorithm = "ES256" if isinstance(by, ECKey) else "RS256"
        header = {"alg": algorithm} | ({"kid": by.kid} if by.kid else {})
        return jwt.encode(header, self.claims(nonce, **more), by, algorithms=[algorithm])

    def authorize(self) -> Response:
        """Send the browser back with a code, if it was sent as it should be."""
        given = request.args.to_dict()
        wanted = {
            "response_type": "code",
            "client_id": CLIENT_ID,
            "redirect_uri": self.redirect_uri,
            "code_challenge_method": "S256",
        }
        if (
            any(given.get(name) != one for name, one in wanted.items())
            or "openid" not in given["scope"].split()
        ):
            return Response(f"This is no request of {CLIENT_ID}: {given}", 400)
        code = secrets.token_hex(8)
        self.codes[code] = given
        said = {"error": self.refusal} if self.refusal else {"code": code}
        answer = redirect(f"{self.redirect_uri}?{urlencode(said | {'state': given['state']})}")
        assert isinstance(answer, Response)
        return answer

    def token(self) -> Response:
        """Give the ID token for a code, once, to the client that proves itself and the sign-in that began it."""
        form, who = request.form, request.authorization
        begun = self.codes.pop(form.get("code", ""), None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        right = (
            begun is not None
            and form.get("grant_type") == "authorization_code"
            and form.get("redirect_uri") == begun["redirect_uri"]
            and base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == begun["code_challenge"]
            and (who is not None and (who.username, who.password) == (CLIENT_ID, CLIENT_SECRET))
        )
        if not right or begun is None:
            return Response(json.dumps({"error": "invalid_grant"}), 400, mimetype="application/json")
        self.issued.append(self.id_token(begun["nonce"]))
        body = {"access_token": "unused", "token_type": "Bearer", "id_token": self.issued[-1]} | self.answered
        return Response(json.dumps(body), self.status, mimetype="application/json")

    def app(self) -> Flask:
        """Its pages."""
        app = Flask("identity provider", static_folder=None)
        app.before_request(lambda: self.asked.append(request.path))

        @app.get(DISCOVERY)
        def discovery() -> Response:
            names = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
            return jsonify(
                {"issuer": self.url}
                | {name: f"{self.url}/{path}" for name, path in names.items()}
                | self.described
            )

        @app.get("/keys")
        def keys() -> Response:
            return jsonify({"keys": [one.as_dict(private=False) for one in self.keys]})

        app.get("/authorize")(self.authorize)
        app.post("/token")(self.token)
        return app


@contextmanager
def identity_provider() -> Iterator[IdentityProvider]:
    """One that runs."""
    one = IdentityProvider()
    server = make_server("127.0.0.1", 0, one.app(), threaded=True)
    one.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield one
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
