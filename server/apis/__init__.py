"""The APIs of the controller listener, one file each, and the registry that lists them.

Each file has an `API`: request and response class, `handle`, `error`, the offered versions, and whether only the
active controller serves it. `handle(request, ctx, controller)` decodes nothing and sends nothing: it returns a
response, returns `Parked` when it has to wait, or raises ApiError, which `error` turns into the API's own error form.
`api.answer` calls it in the order of Kafka's ControllerApis: authorization of the cluster operation, NOT_CONTROLLER,
handler, and a wait for the commit of everything that the handler may have read.

Handlers check what Kafka's ControllerApis checks (names, duplicates, topic authorization) and leave all else to
`mockraft.server.controller`. The order of checks is Kafka's, as the first failure decides the error code.

A handler may assume that the body was decoded in an offered version and that `API.validate` accepted it.
"""
