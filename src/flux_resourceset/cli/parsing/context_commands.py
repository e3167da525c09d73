"""The commands about servers and tokens: login, whoami, config."""

from __future__ import annotations

from flux_resourceset.cli.parsing.grammar import Argument, Command, Group, Option

_NAME = Argument("name", "Name of the context.", completes="context")
_FROM_STDIN = " A - reads it from stdin, a line each, so that it shows in no process list."
_NO_VERIFY = Option("--no-verify", "Store it without asking the server about it.")

LOGIN = Command(
    ("login",),
    "Ask for the tokens of a server, verify them, and make them the current context.",
    "commands.logins:login",
    arguments=(Argument("url", "Base URL of the API, as in https://fleet.example.com."),),
    options=(Option("--name", "Name of the context; that of the host if not given.", "NAME", completes="context"),),
    examples=("login https://fleet.example.com", "login http://127.0.0.1:8080 --name demo < tokens"),
    details="Asks for the token for reading, then for the one for writing, without showing them; an empty answer means that "
    "there is none. Without a terminal they are read from stdin, a line each. Nothing is stored if the server refuses a token "
    "(exit code 3) or cannot be reached (5).",
)

WHOAMI = Command(
    ("whoami",),
    "Show the server, and the name and role of each token.",
    "commands.logins:whoami",
    examples=("whoami", "whoami --context demo -o json"),
    details="Exit code 3 if the server refuses a token.",
)


def groups() -> tuple[Group, ...]:
    return (Group("login", LOGIN.summary, (LOGIN,)), Group("whoami", WHOAMI.summary, (WHOAMI,)), _config())


def _config() -> Group:
    return Group("config", "Store and choose servers and tokens.", (_SET, _USE, *_READING, _DELETE, _RENAME))


_SET = Command(
    ("config", "set-context"),
    "Store a server and its tokens under a name.",
    "commands.contexts:set_context",
    arguments=(_NAME,),
    options=(
        Option("--url", "Base URL of the API, as in http://127.0.0.1:8080.", "URL"),
        Option("--token", "Token for reading." + _FROM_STDIN, "TOKEN"),
        Option("--write-token", "Token for writing." + _FROM_STDIN, "TOKEN"),
        _NO_VERIFY,
    ),
    examples=(
        "config set-context demo --url http://127.0.0.1:8080 --token - --write-token - < tokens",
        "config set-context demo --url https://fleet.example.com --no-verify",
    ),
    details="What is not given stays as it was. The server is asked whether it takes the tokens, unless --no-verify is given: "
    "one that is refused (exit code 3) is not stored, and neither is a server that cannot be reached (5). The first context "
    "becomes the current one. The file is ~/.config/flux-resourceset/config.yaml. With FLUX_API_URL, FLUX_API_TOKEN or "
    "FLUX_API_WRITE_TOKEN set, a context is used only if --context names it.",
)
_USE = Command(
    ("config", "use-context"), "Choose the current context.", "commands.contexts:use_context", (_NAME,),
    examples=("config use-context demo",),
)  # fmt: skip
_READING = (
    Command(
        ("config", "get-contexts"), "List the contexts, without their tokens.", "commands.contexts:get_contexts",
        examples=("config get-contexts",),
    ),
    Command(
        ("config", "current-context"), "Show the current context.", "commands.contexts:current_context",
        examples=("config current-context -o name",),
    ),
    Command(
        ("config", "view"), "Show the configuration file, with the tokens hidden.", "commands.contexts:view",
        options=(Option("--raw", "Show the tokens as well."),), examples=("config view -o yaml",),
    ),
)  # fmt: skip
_DELETE = Command(
    ("config", "delete-context"), "Forget a context and its tokens.", "commands.contexts:delete_context", (_NAME,),
    examples=("config delete-context demo",),
)  # fmt: skip
_RENAME = Command(
    ("config", "rename-context"), "Give a context another name.", "commands.contexts:rename_context",
    (_NAME, Argument("new", "Its new name.")), examples=("config rename-context demo staging",),
)  # fmt: skip
