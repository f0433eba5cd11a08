# fish completion of keel: the command itself says what can follow (cli/complete.cc).
function __keel_complete
    set -l before (commandline -opc)
    set -l found ($before[1] --complete $before[2..-1] (commandline -ct) 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c keel -f -a '(__keel_complete)'
