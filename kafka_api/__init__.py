"""Building blocks of any server of Kafka APIs, for the controller as well as for simulated brokers.

* `api` describes one API: request and response class, versions, handler and error form, and the context of a request.
* `parked` is the result of a handler that must wait.
* `clock` is the machine's time, or virtual time.
* `effects` are what the shell of a sans-IO server does to connections: send, close, pause, resume.
* `error_responses` are those of APIs that both controllers and brokers have.
* `option_types` checks the values of options.
* `extras` explains how to install a missing package.
* `pages` renders HTML from a template of a package, and cleans text for XML.
* `private_files` and `directory_lock` are for files of one process, `linear_patterns` for regular expressions of users.
* `directory_ids` are Kafka's log directory ids (DirectoryId), used on both sides of BrokerRegistration.

But for the clock, this package has no time, sockets, threads or randomness of its own. It imports only `wire`.
"""
