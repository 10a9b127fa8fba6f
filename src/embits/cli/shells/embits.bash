# Completion of embits for bash 4.4 and newer. The program itself says what fits:
# lines of TYPE,VALUE, where TYPE is plain, dir or file (VALUE: globs, parted by |).
_embits() {
    local word="${COMP_WORDS[COMP_CWORD]}" type value glob
    local -a globs found
    COMPREPLY=()
    while IFS=',' read -r type value; do
        case $type in
            plain) COMPREPLY+=("$value") ;;
            dir) compopt -o dirnames ;;
            file)
                IFS='|' read -r -a globs <<<"$value"
                found=()
                for glob in "${globs[@]}"; do
                    mapfile -t -O "${#found[@]}" found < <(compgen -f -X "!$glob" -- "$word")
                done
                if [[ $value == '*' || ${#found[@]} -eq 0 ]]; then
                    compopt -o default # no file of the kind here: any file
                else
                    mapfile -t COMPREPLY < <(printf '%s\n' "${found[@]}"; compgen -d -- "$word")
                    compopt -o filenames
                fi
                ;;
        esac
    done < <(COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD _EMBITS_COMPLETE=bash_complete "$1" 2>/dev/null)
    # NAME= waits for its value.
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
    return 0
}

complete -o nosort -F _embits embits
