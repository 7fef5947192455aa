#!/usr/bin/env bash
# Makes the environment that the Makefile's targets run in.
#
#   tools/setup.sh python VENV CONSTRAINTS EXTRA   a virtual environment with holdfast[EXTRA]
#   tools/setup.sh java                            prints the home of a Java that Spark can use
#   tools/setup.sh store FOLDER                    an S3 server for tests, in FOLDER/bin
#   tools/setup.sh feeds FOLDER                    PostgreSQL, and Kafka and Debezium in FOLDER
#
# As root on Debian or Ubuntu it installs what is missing; anywhere else it stops with the one
# command that does. Written for bash 3.2, which is what macOS has.
set -euo pipefail

min_minor=11 max_minor=14 # the Pythons that the pinned versions have wheels for
min_java=17

say() { printf '%s\n' "$*" >&2; }
stop() {
    say "$@"
    exit 1
}

can_apt() { [ "$(id -u)" = 0 ] && [ -e /etc/debian_version ] && command -v apt-get >/dev/null; }

apt_updated=
apt_update() {
    [ -n "$apt_updated" ] || apt-get update -qq >&2
    apt_updated=yes
}
apt_install() {
    say "Installing $* with apt-get."
    apt_update
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >&2
}

# hint APT DNF BREW: the one command that installs a thing here.
hint() {
    if command -v apt-get >/dev/null; then
        echo "sudo apt-get install -y $1"
    elif command -v dnf >/dev/null; then
        echo "sudo dnf install -y $2"
    elif command -v brew >/dev/null || [ "$(uname -s)" = Darwin ]; then
        echo "brew install $3"
    else
        echo "your package manager's equivalent of: apt-get install -y $1"
    fi
}

# ---- Python -------------------------------------------------------------------------------

# version EXECUTABLE: "3.12.1", or nothing where it is no CPython that runs.
version() {
    "$1" -c 'import sys, platform
if platform.python_implementation() == "CPython": print("%d.%d.%d" % sys.version_info[:3])' \
        2>/dev/null || true
}

minor() { echo "$1" | cut -d. -f2; }
supported() {
    case $1 in
        3.*) [ "$(minor "$1")" -ge $min_minor ] && [ "$(minor "$1")" -le $max_minor ] ;;
        *) return 1 ;;
    esac
}

# find_python NAME...: sets python and its version, or the first unfit ones in older and newer.
find_python() {
    python='' python_version='' older='' newer=''
    local name path found
    for name in "$@"; do
        path=$(command -v "$name" 2>/dev/null) || continue
        found=$(version "$path")
        [ -n "$found" ] || continue
        if supported "$found"; then
            python=$path python_version=$found
            return 0
        fi
        if [ "${found%%.*}" = 3 ] && [ "$(minor "$found")" -gt $max_minor ]; then
            newer=${newer:-$found at $path}
        else
            older=${older:-$found at $path}
        fi
    done
    return 1
}

refuse_python() {
    local fix
    fix=$(hint "python3.12 python3.12-venv" python3.12 python@3.12)
    if [ -n "$newer" ]; then
        stop "The versions in $1 need Python 3.$min_minor to 3.$max_minor; found $newer." \
            "Install one beside it with: $fix"
    fi
    stop "Holdfast needs Python 3.$min_minor or newer; found ${older:-none}." \
        "Install one with: $fix"
}

has_venv() { "$1" -c 'import venv, ensurepip' >/dev/null 2>&1; }

setup_python() {
    local venv=$1 constraints=$2 extra=$3
    local names='python3 python python3.14 python3.13 python3.12 python3.11'
    # The lowest versions have wheels for the older Pythons only.
    case $constraints in
        *lowest*) max_minor=13 names='python3.11 python3.12 python3.13 python3' ;;
    esac

    if [ -x "$venv/bin/python" ] && supported "$(version "$venv/bin/python")" &&
        "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        : # it works: install into it
    else
        # shellcheck disable=SC2086 # a list of words
        if ! find_python ${PYTHON:-} $names; then
            if [ -z "$older$newer" ] && can_apt; then
                apt_install python3 python3-venv
                # shellcheck disable=SC2086
                find_python $names || refuse_python "$constraints"
            else
                refuse_python "$constraints"
            fi
        fi
        if ! has_venv "$python"; then
            local short=${python_version%.*}
            if can_apt; then
                apt_install "python$short-venv" || apt_install python3-venv
            fi
            has_venv "$python" || stop "Python $python_version at $python cannot make virtual" \
                "environments. Install what is missing with:" \
                "$(hint "python$short-venv" "python$short" "python@$short")"
        fi
        say "Making $venv with Python $python_version."
        "$python" -m venv --clear "$venv"
    fi

    say "Installing into $venv (about 1 GB; some minutes, once)."
    local pip="$venv/bin/python -m pip --disable-pip-version-check --no-input install --quiet"
    # What builds is pinned like what runs: hence no build isolation, and the builders first.
    $pip --constraint "$constraints" hatchling editables setuptools wheel
    $pip --constraint "$constraints" --no-build-isolation --editable ".[$extra]"
}

# ---- Java ---------------------------------------------------------------------------------

# try_java JAVA: sets home where it is new enough, or the first older one in old_java.
try_java() {
    local settings major found
    [ -x "$1" ] || return 1
    settings=$("$1" -XshowSettings:properties -version 2>&1) || return 1
    found=$(printf '%s\n' "$settings" | sed -n 's/^ *java\.version = //p')
    major=$(printf '%s\n' "$settings" | sed -n 's/^ *java\.specification\.version = //p')
    [ -n "$major" ] || return 1
    if [ "${major%%.*}" -lt $min_java ]; then
        [ -n "$old_java" ] || old_java="$found at $1"
        return 1
    fi
    home=$(printf '%s\n' "$settings" | sed -n 's/^ *java\.home = //p')
}

find_java() {
    home='' old_java=''
    local java
    for java in "${JAVA_HOME:+$JAVA_HOME/bin/java}" "$(command -v java || true)" \
        /usr/lib/jvm/*/bin/java /opt/java/*/bin/java \
        /Library/Java/JavaVirtualMachines/*/Contents/Home/bin/java \
        /opt/homebrew/opt/openjdk*/bin/java /usr/local/opt/openjdk*/bin/java; do
        if try_java "$java"; then
            return 0
        fi
    done
    return 1
}

# The releases of Debian and Ubuntu have one or the other; the default one may be older.
apt_java() {
    if apt-cache show openjdk-17-jre-headless >/dev/null 2>&1; then
        echo openjdk-17-jre-headless
    else
        echo openjdk-21-jre-headless
    fi
}

setup_java() {
    if ! find_java && can_apt; then
        apt_update
        apt_install "$(apt_java)"
        find_java || true
    fi
    [ -n "$home" ] || stop "Spark needs Java $min_java or newer; found ${old_java:-none}." \
        "Install it with: $(hint "$(apt_java)" java-21-openjdk-headless openjdk@21)"
    printf '%s\n' "$home"
}

# ---- An S3 server -------------------------------------------------------------------------

# One that checks and takes effect in one step when a put is conditional, as the real ones do.
minio=v0.0.0-20260212201848-7aac2a2c5b7c

setup_store() {
    local folder
    folder=$(cd "$1" && pwd)
    [ ! -x "$folder/bin/minio" ] || return 0
    command -v go >/dev/null || stop "No S3 server for tests: building one needs Go." \
        "Install it with: $(hint golang golang go)"
    say "Building an S3 server (some minutes, once)."
    GOBIN="$folder/bin" go install "github.com/minio/minio@$minio" ||
        stop "The S3 server could not be built; tests that need it are skipped."
}

# ---- Feeds: PostgreSQL, Kafka, and Kafka Connect with Debezium ----------------------------

kafka='org.apache.kafka:kafka_2.13:4.1.0'
debezium='io.debezium:debezium-embedded:3.6.0.Final io.debezium:debezium-connector-postgres:3.6.0.Final'

# jars FOLDER GROUP:NAME:VERSION...: with all that these need, Connect itself among it.
jars() {
    local folder=$1 one group name version
    shift
    [ ! -e "$folder/.ready" ] || return 0
    rm -rf "$folder"
    mkdir -p "$folder"
    {
        echo '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        echo '<groupId>tests</groupId><artifactId>feeds</artifactId><version>1</version>'
        echo '<packaging>pom</packaging><dependencies>'
        for one in "$@"; do
            IFS=: read -r group name version <<<"$one"
            echo "<dependency><groupId>$group</groupId><artifactId>$name</artifactId>"
            echo "<version>$version</version></dependency>"
        done
        echo '</dependencies></project>'
    } >"$folder/pom.xml"
    mvn -q -B -f "$folder/pom.xml" dependency:copy-dependencies -DoutputDirectory="$folder" &&
        touch "$folder/.ready"
}

setup_feeds() {
    local folder missing=''
    folder=$(cd "$1" && pwd)
    if ! command -v initdb >/dev/null && ! compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; then
        if ! can_apt || ! apt_install postgresql; then
            say "No PostgreSQL: tests that need it are skipped. Install it with:" \
                "$(hint postgresql postgresql-server postgresql)"
            missing=yes
        fi
    fi
    if ! command -v mvn >/dev/null && ! { can_apt && apt_install maven; }; then
        stop "No Kafka: fetching it needs Maven; tests of feeds are skipped." \
            "Install it with: $(hint maven maven maven)"
    fi
    say "Fetching Kafka and Debezium into $folder (80 MB, once)."
    # shellcheck disable=SC2086 # a list of words
    if ! jars "$folder/kafka" $kafka || ! jars "$folder/connect" $debezium; then
        stop "Kafka or Debezium could not be fetched; tests that need them are skipped."
    fi
    [ -z "$missing" ]
}

case ${1:-} in
    python) setup_python "${2:?the folder}" "${3:?the constraints file}" "${4:?the extra}" ;;
    java) setup_java ;;
    store) setup_store "${2:?the folder}" ;;
    feeds) setup_feeds "${2:?the folder}" ;;
    *) stop "usage: tools/setup.sh python VENV CONSTRAINTS EXTRA | java | store FOLDER | feeds FOLDER" ;;
esac
