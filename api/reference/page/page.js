// Shows /openapi.json with Swagger UI. Nothing is asked of another host, and nothing outlives the page.
"use strict";

window.SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#reference",
  deepLinking: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  defaultModelExpandDepth: 3,
  docExpansion: "list",
  persistAuthorization: false,
  queryConfigEnabled: false,
  validatorUrl: null,
});
