"""
The purposes of programs and of their verbs, by name; `looks` draws the conclusions.
"""

from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


SERVICES: Final = _words(
    """
    kubectl oc helm k9s argocd flux eksctl minikube kind istioctl nomad consul vault docker docker-compose podman nerdctl
    crictl gh glab hub tea aws gcloud gsutil bq az oci doctl hcloud linode-cli scw openstack ibmcloud heroku fly flyctl
    vercel netlify wrangler railway firebase supabase databricks airflow prefect systemctl supervisorctl pm2 launchctl
    virsh multipass vagrant tailscale adb ansible salt pssh pdsh clush
    """
)
"""Programs for what is elsewhere or goes on by itself. Only a few: a command outside of a shell's argument is known by them."""
FILES: Final = _words(
    """
    git hg svn jj bzr sl fossil tig ls dir cat bat head tail less more most grep egrep fgrep rg ag ack find fd sed awk gawk
    mawk cut sort uniq wc tr tee diff cmp comm join paste file stat du df tree eza exa lsd nl od xxd hexdump strings vi vim
    nvim nano emacs code subl open xdg-open cp mv rm ln mkdir rmdir touch chmod chown tar zip unzip gzip gunzip rsync scp
    sftp basename dirname realpath readlink pwd cd pushd popd echo printf test [ [[ true false : yes seq date cal printenv
    which whereis type whoami id hostname uname man info help history alias export set unset declare local read return exit
    trap source . for case select function in jq yq xq gron mlr column rev tac shuf md5sum sha1sum sha256sum base64 openssl gpg dpkg
    rpm psql createdb dropdb pg_dump pg_restore mysql mariadb mysqldump sqlite3 duckdb mongosh cqlsh
    """
)
"""Programs that work on files, text, sources and databases: their words are names and patterns."""
DATABASES: Final = _words("psql mysql mariadb mongosh mongo cqlsh clickhouse-client snowsql sqlcmd usql pgcli mycli")
"""Clients of databases that others write to. One that opens a file is none of them."""
STORES_OF_KEYS: Final = _words("redis-cli valkey-cli keydb-cli")
SHOWERS: Final = _words("cat bat less more grep egrep fgrep rg wc stat ls du awk gawk mawk cut")
"""Programs that show files as they are now."""
BUILDS: Final = _words(
    """
    gcc g++ cc clang ld rustc cargo go gofmt javac scalac kotlinc tsc babel swc esbuild webpack rollup vite xcodebuild mvn
    mvnw gradle gradlew sbt dotnet msbuild cmake ninja meson bazel cabal ghc rebar3 terraform tofu terragrunt packer pytest
    tox nox jest vitest mocha karma cypress playwright rspec phpunit ctest coverage ruff black flake8 pylint isort mypy pyright eslint prettier
    biome stylelint rubocop golangci-lint shellcheck hadolint pre-commit pip pip3 apt apt-get apt-cache dnf yum pacman apk
    gem brew choco nvm fnm volta pyenv rbenv rustup opam luarocks flatpak winget scoop nix guix conan vcpkg
    flutter dart lein elm zig nim
    """
)
"""Programs that build, test and install here: what they find changes only if somebody works."""
ASKED: Final = {
    "git": _words("fetch ls-remote"),
    "npm": _words("view info show"),
    "pnpm": _words("view info show"),
    "yarn": _words("info npm"),
    "brew": _words("services"),
    "pip": _words("index"),
    "openssl": _words("s_client"),
}
"""Subcommands by which some of them ask elsewhere all the same."""
TASKS: Final = _words(
    """
    make gmake just task rake invoke inv npm npx pnpm yarn bun bunx deno uv uvx poetry pipenv pdm hatch rye pipx bundle
    conda mamba pixi mix stack swift pod mise asdf nx turbo lerna composer grunt gulp ant
    alembic flask django-admin rails prisma knex sequelize typeorm symfony
    """
)
"""Programs that run tasks of any name: one called `status` or `logs` is believed, one called `list` is not."""
LOOKERS: Final = _words(
    """
    ps pgrep pidof pstree top htop btop uptime w who free vmstat iostat mpstat sar iotop lsof fuser ss netstat jobs wait
    watch fswatch squeue sacct sinfo sstat qstat qhost bjobs condor_q nvidia-smi rocm-smi gpustat nvtop journalctl dmesg ping ping6
    nc fping pg_isready dig host nslookup delv kdig drill doggo whois traceroute mtr stern kubetail kail logcat tasklist atq lpstat
    mailq inotifywait snmpget snmpwalk mosquitto_sub
    get-process get-service get-job receive-job wait-job wait-process
    get-eventlog get-winevent test-netconnection test-connection
    """
)
"""Programs that look at changing things with any arguments."""
SLEEPERS: Final = _words("sleep gsleep usleep start-sleep")
HTTP: Final = _words("curl wget http https xh invoke-webrequest invoke-restmethod iwr irm")
HAPPENS: Final = _words(
    """
    status state ps top log logs tail event events health healthcheck healthz checks progress stats metrics uptime monitor
    processlist df
    """
)
"""Verbs and nouns of what goes on by itself. An acting verb behind one tells of something else: `logs delete`."""
AWAITS: Final = _words("wait await watch poll ping follow logcat")
LOOKS: Final = _words(
    """
    get list ls describe desc show view display stat inspect info details report query lookup read search find capture print
    history dump head exists receive peek
    """
)
ACTS: Final = _words(
    """
    create apply delete del destroy remove rm add set unset put post patch edit install uninstall up down start stop restart
    reload reboot shutdown kill pkill killall terminate scale rollback promote undo pause resume suspend cancel abort retry
    rerun replay push publish upload download merge close reopen comment login logout init new checkout enable disable attach
    detach connect disconnect register deregister allow revoke grant deny approve reject invoke send submit dispatch trigger
    drain cordon uncordon taint annotate expose autoscale rename move mv cp copy clear flush purge prune reset clean rotate
    renew lint format fix write save modify change replace assign lock unlock mount unmount leave bootstrap test exec ssh
    use link generate gen provision launch fork clone commit load save dev serve debug console join mask unmask
    preset pin unpin ready browse review reconcile mb rb
    """
)
TASK_NAMES: Final = _words(
    "run build deploy release import export backup restore sync update upgrade migrate schedule tag label transfer pull"
)
"""Verbs that act, and names of what is looked at: `run IMAGE`, but `run view`."""
SETTINGS: Final = _words(
    """
    config configure configuration auth context contexts plugin plugins extension extensions completion version help alias
    cat explain template kustomize package presign diff convert options daemon-reload daemon-reexec
    """
)
"""These show a setting of the program itself, or text made of files that are here."""
