# Completion of embits for fish. The program itself says what fits: lines of TYPE,VALUE, where
# TYPE is plain (a tab and the help may follow), dir or file (VALUE: globs, parted by |).
function __embits_complete
    set -l program (commandline -opc)[1]
    for answer in (COMP_WORDS=(commandline -cp) COMP_CWORD=(commandline -t) _EMBITS_COMPLETE=fish_complete $program 2>/dev/null)
        set -l parts (string split -m 1 , -- $answer)
        switch $parts[1]
            case plain
                echo $parts[2]
            case dir
                __fish_complete_directories (commandline -t)
            case file
                if test "$parts[2]" = '*'
                    __fish_complete_path (commandline -t)
                else
                    for glob in (string split '|' -- $parts[2])
                        __fish_complete_suffix (string replace '*' '' -- $glob)
                    end
                end
        end
    end
end

complete --no-files --keep-order --command embits --arguments '(__embits_complete)'
