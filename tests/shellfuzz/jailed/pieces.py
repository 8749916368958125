"""
What generated commands are put together from.
"""

from typing import Final


PLAIN: Final = (
    *("a.txt", "b.txt", "src", "src/main.py", "./a.txt", "nowhere", "x1", "empty", "tool", "link-in", "dir-in/main.py"),
    *("-la", "-n", "--", "-", "--color=auto", "--include=a.txt", "-I{}", "-e", "10,20p", "s/a/b/", "HEAD~2", "HEAD^", "@{u}"),
    *("a=b", "=", "a:b", "1", "0", "+x", "%1", "@", ",", ".", "..", "../x", "/world/ws/a.txt", "A", "word", "x!", "a]", "]"),
    *("stash@{0}", "{}", "+%s", "user@host:~/x", "a~", "~~", "a#b", "key==value", "https://example.org/a?b=c", "C:/x", "1>2"),
)
QUOTED: Final = (
    *("'a b'", '"a b"', "''", '""', "'$HOME'", "'`id`'", "'*'", '"*"', "'a\nb'", '"a\nb"', "'#'", "'~'", '"~"', "'|'", '";"'),
    *("'\\'", "'a\\nb'", '"a\\nb"', '"\\$x"', '"\\`x\\`"', '"\\""', '"\\\\"', '"a\\\nb"', "'\"'", '"\'"', "'it'\\''s'", "'{a,b}'"),
    *("'if'", '"&&"', "'>' ", "'\t'", '"\t"', "'\u00fc'", '"\u00fcber"', "'\u200b'", '"!"', "'!'", '"a!b"', '"$"', '"a$"', '"$ "'),
    *('"5$, 6$/x"', "'-n'", '"-dash"', '"[x]"', "'[a]'*", '"$)"', '"$\'"', "'}'", '"}"', "'='", "'LANG=C'"),
)
ESCAPED: Final = (
    *("\\ ", "\\*", "\\?", "\\[", "a\\ b", "\\\\", "\\'", '\\"', "\\$HOME", "\\`", "\\;", "\\|", "\\&", "\\#x", "\\~", "\\n", "\\!"),
    *("\\{a,b}", "a\\\nb", "\\\n", "\\-n", "\\<", "\\>", "\\(", "\\=", "c\\ d.txt", "star\\*", "\\[x]", "\\\u00fc", "\\a.txt"),
)
PATTERNS: Final = (
    *("*", "*.txt", "?.txt", "[ab].txt", "[!a].txt", "[^a].txt", "[a-c]*", "x?", "x[0-9]*", "x[12]", "src/*", "src/*.py", "*/*.py"),
    *(".*", "*/", "**", "**/x", "./*", "-*", "--*", "src/-*", "*d*", "*[x]*", "[x]", "[[]x]", "[]x]*", "[a", "a[", "[!]*", "[]", "[]*"),
    *("star*", "star\\*", "back*", "new*", "quote*", '"a"*', "'a'.*", '*"t"', "'*'*", "\\**", "a\\?*", "[\\]x]*", '["a"b]*', "[a\\-c]*"),
    *("nowhere*", "?", "??", "???", "dir-in/*", "dangling*", "loop*", "loop/*", "link*/", "empty/*", "*/nowhere", "src//*", "//*"),
    *("[[:alpha:]]*", "[[:upper:]]*", "[a-]*", "[-a]*", "[A-z]*", "[z-a]*", "[0-9a-f]*", "[.]*", "*.", "*\u00fc*", "?ml*", "[\u00fc]*"),
    *("src/*/*", "*/*/*", "src/.*", ".[a-z]*", "./.*", "src/../*", "../ws/*", "/world/ws/*.txt", "/world/ws/src/*", "a*b*c*d*"),
    *("*.{txt,py}", "{a,b}.txt", "{a,b}*", "src/{main,lib}*", "{,x}1", "x{1,10}", "{a,b}{1,2}", "{a}", "{a..c}", "{1..3}", "x{}"),
    *("[a,b]*", "[a/b]*", "[!-z]*", "*'['x]*", "[x]*", "\\[x]*", "*\\[x\\]", "--include=*.py", "-*h", "a.tx[t]", "[a][.]*", "%*"),
)
PROGRAMS: Final = (
    *("ls", "cat", "git", "rm", "grep", "rg", "find", "sed", "sort", "head", "tail", "wc", "xargs", "python3", "make", "diff"),
    *("jq", "killed", "./tool", "src/tool", "/programs/ls", "/world/ws/tool", "'ls'", '"cat"', "l's'", "'a b'", "a\\ b", "\u00fcber"),
    *("nosuch", "./nosuch", "a.txt", "./a.txt", "src", "./src", "empty/x", "'if'", "\\while", "'!'", "'{'", "\\~", "link-in", "./loop"),
    *("echo", "printf", "true", "false", "test", "[", "pwd", "kill", "env", "tool", "'x=y'", "LS", "''", "l\\s", "'-x'", "/bin/ls"),
)
ASSIGNED: Final = (
    *("LANG=C", "LC_ALL=C", "LC_ALL=en_US.UTF-8", "TZ=UTC", "NO_COLOR=1", "CI=true", "CI=", "LANG='a b'", 'TZ="a b"', "LANG=a*"),
    *("LANG=a\\ b", "CI=a'b'c", "TZ=$x", "CI=~", "CI=a:~", "CI=a=b", "TERM=dumb", "A=1", "A=1 B=2", "KEPT=other", "PATH=/nowhere"),
    *("PATH=.", "IFS=x", "LANG+=C", "a[0]=1", "1A=2", "A-B=1", "CI={a,b}", "CI=[x]", "CI='a\nb'", "CI=\u00fc", "LD_PRELOAD=x", "_=x"),
)
REDIRECTED: Final = (
    *("> out.txt", ">out.txt", ">> out.txt", "< a.txt", "<b.txt", "2> err.txt", "2>err.txt", "2>>err.txt", "&> both.txt", "&>> both.txt"),
    *("2>&1", ">&2", "1>&2", "> /dev/null", "2>/dev/null", "< /dev/null", "> /dev/null 2>&1", "2>&1 > out.txt", "> out.txt 2>&1"),
    *("> src/new.py", "> 'a b'", '> "new"', "> a.txt", ">> a.txt", "< nowhere", "> nowhere/x", "> src", "< src", "> empty", "> new\\ name"),
    *("1> out.txt", "0< a.txt", ">&1", "2>&2", "< a.txt < b.txt", "> one > two", "> a.txt < a.txt", ">-", "> -x", "> ./-x", "> locked"),
    *("> link-in", "< link-in", "< dir-in/main.py", "> dangling", "> dir-in/new", "< loop", "> \u00fc", "> x1 2> x1", "> 'new\nline'", "> x=y"),
)
STRANGE: Final = (
    *("3> x", "3>&1", "2>&3", ">&-", "<&0", "<> a.txt", ">| a.txt", "< <(ls)", "> >(cat)", "<<< word", "<<< $x", ">& out.txt", ">&a"),
    *("{fd}> x", "> *.txt", "> {a,b}", "> $x", '> "$x"', "> ~", "> ~/x", ">", "<", ">>", "2>", "&>", "> > x", "10> x", "-1> x", "2 > x", "2\\> x"),
    *("> /dev/stdout", "> /dev/tcp/127.0.0.1/9", "> /dev/fd/1", "< /dev/stdin", "> /dev/zero", "> ''", "> a.txt/", "> .", "> ..", "> ./"),
)
NEAR: Final = (
    *("$x", "${x}", "$HOME", '"$HOME"', "$(ls)", "`ls`", '"$(ls)"', '"`ls`"', "$((1+1))", "$'a'", '$"a"', "$@", "$*", "$?", "$$", "$!", "$1"),
    *("${x:-ls}", "${x//a/b}", "!x", "!!", "!$", "~", "~root", "~/x", "# comment", "#", "&", "& ls", "&&", "||", "|&", "|", ";", ";;", ";&"),
    *("(", ")", "( ls )", "(ls)", "()", "f() { ls; }", "{ ls; }", "{", "}", "{a,b}", "{a..z}", "[[ a ]]", "((1))", "@(a|b)", "!(a)", "?(a)"),
    *("\r", "\r\n", "\n", "\t", "\v", "\f", "\0", "\x01", "\x7f", "\x81", "\x88", "\u00a0", "\u2028", "\u3000", "\u200b", "\u202e", "\ufeff"),
    *("\\", "\\\n", "\\\r\n", "'", '"', "'\\", '"\\', "`", "$", "$ ", "\u2018a\u2019", "\u201ca\u201d", "\uff1b", "\uff5c", "\ud800", "\U000e0020"),
    *("if true; then ls; fi", "while true; do ls; done", "for x in a; do ls; done", "case a in a) ls;; esac", "time ls", "! ls", "coproc ls"),
    *("eval ls", "exec ls", "source a.txt", ". ./tool", "command ls", "command -v ls", "builtin echo", "export A=1", "set -e", "exit 3"),
    *("alias x=ls", "trap ls EXIT", "read x", "wait", "type ls", "umask 0", "ulimit -n 5", "cd", "cd -", "cd ~", "shift", "return 1", ": x"),
    *("<<E\nx\nE", "<<'E'\n$x\nE", '<<"E"\n`ls`\nE', "<<E\n$x\nE", "<<-E\n\tx\n\tE", "<<\\E\n$(ls)\nE", "<<E", "<<E\nx", "<< 'E'\nE\n"),
    *("<<A <<B\n1\nA\n2\nB\n", "<<'E' | cat\n1\nE\n", "<<'E' && ls\n1\nE", "<<'E'\nE ", "<<'E'\n E\nE", "<<''\nx\n\n", "<<'a b'\nx\na b"),
    *("%1", "^a^b", "a=(b c)", "A=1", "A=1;", "A=$x", "let x=1", "[ -f a.txt ]", "test -f a.txt", "[ a", "disown", "jobs", "hash -r", "pushd src"),
)
LEAVING: Final = (
    *("> ../outside/write.txt", ">> ../outside/write.txt", "< ../outside/read.txt", "2> ../outside/made", "&> /world/outside/write.txt"),
    *("> /world/outside/write.txt", "< /world/outside/read.txt", "> link-out", "< link-out", ">> link-out", "> dir-out/write.txt"),
    *("< dir-out/read.txt", "> dangling-out", "2>> dangling-out", "> src/out/made", "> src/up/../outside/made", "> src/../../outside/made"),
    *("> dir-in/../../outside/made", "> ./../outside/made", "> '../outside/made'", '> "../outside/made"', "> ..\\/outside/made"),
    *("> //world/outside/made", "> /world/ws/../outside/made", "> empty/../../made", "> ../made", "> ../ws2", "> /world/log/x", "> ../log/order"),
    *("../outside/*", "/world/outside/*", "dir-out/*", "src/out/*", "src/up/../outside/*", "../*", "/world/*", "../*/*", "*/*.txt", "dir-o*/c*"),
    *("src/*/../../outside/*", "*/../../outside/*", ".*/outside/*", "..*/*", "/*", "/*/outside/*", "link-out/*", "*/deep/*/*", "src/*/*.txt"),
    *("d*/../outside/*", "[.].*/*", ".?/*", ".?/outside/*", "?./*", "[.][.]/*", ".[.]/outside/*", "{..,.}/outside/*", "{.,}./outside/*"),
    *("cd .. && ls", "cd ../outside && ls *", "cd dir-out && ls *", "cd src/out; ls *", "cd src/up/..; ls *", "cd /world/outside && ls", "cd /; ls *"),
    *("cd dir-out && cat < read.txt", "cd .. ; ls > made", "cd dir-in/.. && ls > made", "cd src && ls > ../../outside/made", "(cd ..; ls)"),
    *("cd empty && ls > ../../made", "cd src && cd .. && cd .. && ls", "cd dir-out > x", "cd link-out; ls", "cd ''; ls", "cd //; ls", "cd src/../..; ls"),
    *("cd dir-in && ls > up/../x", "cd src/up && ls *", "cd src/up/src/up && cat < a.txt", "cd ..\\/outside; ls", "CDPATH=.. cd outside && ls"),
    *("$(cat ../outside/read.txt)", "`cat < /world/outside/read.txt`", "<<E\n$(cat /world/outside/read.txt)\nE", "${x:-$(< ../outside/read.txt)}"),
    *("< a.txt > link-out", "> out.txt > ../outside/write.txt", "2>&1 > link-out", "> x 2> link-out", "< link-out < a.txt", "&> link-out"),
    *("~/read.txt", "> ~/write.txt", "< ~/read.txt", "HOME=/world/outside cat < ~/x", "cd && ls", "cd ~ && ls *", "cd -P .. && ls", "cd -- .. && ls"),
)
"""Ways out of the workspace: by a redirection, a link, a pattern, a folder, a substitution, a home."""
SIGNS: Final = (" && ", " || ", "; ", "\n", " | ", " | ", "&&", "||", ";", "|", "\n\n", " ;\n", " &&\n", " |\n ", " ||\n", "; # note\n")
HOSTILE: Final = (
    *("a", "'", '"', "\\", "*", "[", "[a", "[!", "]", "{", "{a,", "{,}", "(", "( ", ")", "$", "`", "~", "#", "&", "|", ";", "<", ">", "=", "-"),
    *("a ", "a;", "a|", "a&&", "> a ", "< a ", "a=b ", "'a'", '"a"', "\\a", "\\\n", "a\n", " ", "\t", "\n", "*a", "[a]", "{a,b}", "?", "**/"),
    *("<<E ", "<<'E'\n", "<<E\nE\n", "cd a;", "(cd a)", "((", "\u00fc", "\u200b", "$(", "${", "$'", "2>&1 ", "&", "!", "^", "~+", "@", "%"),
)
"""Repeated many times: the work to read a text must grow as its length does."""
EXOTIC: Final = (
    "\0\x01\x02\x07\x08\x0b\x0c\x0e\x1b\x1f\x7f\x80\x81\x82\x85\x88\x9b\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u180e\u2000\u2003"
    "\u2007\u200b\u200c\u200d\u200e\u2028\u2029\u202a\u202e\u202f\u205f\u2060\u2066\u2800\u3000\u3164\ufe00\ufeff\uffa0\ufff9\ufffd"
    "\uff04\uff06\uff08\uff1b\uff1c\uff5c\uff40\u037e\u2018\u2019\u201c\u201d\u2024\u2044\u2215\u2216\u00fc\u00df\u0131\u212a\ud800\udcff"
    "\udfff\U0001f600\U000e0001\U000e0020\U0010ffff\u0301\u0338\u20dd"
)
ASCII: Final = "".join(map(chr, range(32, 127))) + "\t\n\r  ''\"\"\\\\&&||;;<<>>$$`*?[](){}~#!="
