#compdef embits
# Completion of embits for zsh. The program itself says what fits: three lines for each answer,
# its type (plain, dir or file), its value (of a file: globs, parted by |) and its help or _.
_embits() {
    local -a plain described answers
    local type value help
    answers=("${(@f)$(COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT - 1)) _EMBITS_COMPLETE=zsh_complete ${words[1]} 2>/dev/null)}")
    for type value help in "${answers[@]}"; do
        case $type in
            plain)
                if [[ $help == _ ]]; then plain+=("$value"); else described+=("$value:$help"); fi ;;
            dir) _files -/ ;;
            file) if [[ $value == '*' ]]; then _files; else _files -g "($value)"; fi ;;
        esac
    done
    (( $#described )) && _describe -V embits described
    (( $#plain )) && compadd -V embits -a plain
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _embits "$@" # from a folder of $fpath
else
    compdef _embits embits # from eval or source
fi
