"""The endpoints that a batch's lines can go to. Which of them a platform takes, its profile says."""

CHAT = "/v1/chat/completions"
EMBEDDINGS = "/v1/embeddings"
RESPONSES = "/v1/responses"
MESSAGES = "/v1/messages"

OF_KIND = {"chat": (CHAT, RESPONSES, MESSAGES), "embedding": (EMBEDDINGS,)}
"""Kind of model to the endpoints that its engine serves."""
KNOWN = tuple(endpoint for served in OF_KIND.values() for endpoint in served)
