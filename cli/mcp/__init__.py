"""The admin API as tools of an assistant, over the Model Context Protocol.

`command` is `mockraft mcp`, `controllers` the controller that the tools work on, `tools` the tools, and `written_test`
turns what was scripted into the source of a pytest test. Nothing here knows more of a controller than its admin API.

Each tool is one operation of the API, with its JSON; a refusal of the API is an error of the tool, with the same text.
Tools that only read are marked as such. Without `--allow-changes`, tools that change a controller are refused for one
that was running before, and for the twin of a real one.
"""
