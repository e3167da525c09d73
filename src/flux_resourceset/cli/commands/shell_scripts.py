"""`completion`: a script per shell, which asks this program what could follow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flux_resourceset.cli import failures
from flux_resourceset.cli.parsing.command_table import COMPLETE, OFFER_FILES
from flux_resourceset.cli.parsing.grammar import PROGRAM

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session

_BASH = f"""# bash completion of {PROGRAM}
_flux_resourceset_cli() {{
    local cur="${{COMP_WORDS[COMP_CWORD]}}" candidates IFS=$'\\n'
    read -r -d '' -a candidates < <({PROGRAM} {COMPLETE} "${{COMP_WORDS[@]:1:COMP_CWORD}}" 2>/dev/null)
    if [[ "$cur" == "=" ]]; then cur=""; fi
    if [[ "${{candidates[0]}}" == "{OFFER_FILES}" ]]; then
        COMPREPLY=($(compgen -f -- "$cur"))
    else
        COMPREPLY=("${{candidates[@]}}")
        if [[ "${{COMPREPLY[0]}}" == *= ]]; then compopt -o nospace; fi
    fi
}}
complete -o filenames -F _flux_resourceset_cli {PROGRAM}
"""

_ZSH = f"""#compdef {PROGRAM}
# zsh completion of {PROGRAM}
_flux_resourceset_cli() {{
    local -a candidates
    candidates=(${{(f)"$({PROGRAM} {COMPLETE} "${{(@)words[2,CURRENT]}}" 2>/dev/null)"}})
    if [[ "${{candidates[1]}}" == "{OFFER_FILES}" ]]; then
        _files
    else
        local -a keys=(${{(M)candidates:#*=}}) words_=(${{candidates:#*=}})
        compadd -S '' -a keys
        compadd -a words_
    fi
}}
if [ "$funcstack[1]" = "_flux_resourceset_cli" ]; then
    _flux_resourceset_cli "$@"
else
    compdef _flux_resourceset_cli {PROGRAM}
fi
"""

_FISH = f"""# fish completion of {PROGRAM}
function __flux_resourceset_cli
    set -l words (commandline -opc) (commandline -ct)
    set -l candidates ({PROGRAM} {COMPLETE} $words[2..-1] 2>/dev/null)
    if test "$candidates[1]" = "{OFFER_FILES}"
        __fish_complete_path (commandline -ct)
    else
        printf '%s\\n' $candidates
    end
end
complete -c {PROGRAM} -f -a '(__flux_resourceset_cli)'
"""


def script(session: Session) -> int:
    text = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}[session.values.required("shell")]
    session.output.raw(text.encode())
    return failures.OK
