"""HTTP in: the OpenAI-compatible API. It knows requests and answers; the rules live in gridline."""
