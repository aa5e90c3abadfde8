# shellcheck shell=sh
# What a droplet without Python 3.10 can tell (docs/wire.md 4): `sh -c TEXT droplet-console telemetry INTERVAL`, or
# `facts`. POSIX sh, /proc, and curl, wget and nvidia-smi where they are.

no_python='it takes Python 3.10 or newer on the droplet, and there is none'
root=${DROPLET_ROOT:-}
reasons=''

# A JSON string of "$1": printable ASCII, 512 characters at most.
quoted() {
    printf '"%s"' "$(printf '%s' "$1" | LC_ALL=C tr -cd '\040-\176' | cut -c 1-512 | sed 's/\\/\\\\/g; s/"/\\"/g')"
}

# A reason for the place "$1".
unavailable() {
    reasons="$reasons${reasons:+,}$(quoted "$1"):$(quoted "$2")"
}

is_number() {
    case $1 in
        '' | *[!0-9.]* | *.*.* | . | .* | *.) return 1 ;;
        *) return 0 ;;
    esac
}

is_whole() {
    case $1 in
        '' | *[!0-9]* | 0[0-9]*) return 1 ;;
        *) return 0 ;;
    esac
}

# Clock ticks as seconds. USER_HZ is 100 wherever Linux runs servers.
seconds() {
    printf '%d.%02d' "$(($1 / 100))" "$(($1 % 100))"
}

first_word() {
    word=''
    [ -r "$1" ] && read -r word _ <"$1"
    printf '%s' "$word"
}

host_cpu() {
    cores=0
    total=''
    while read -r key a b c d e f g h _; do
        case $key in
            cpu) total="$(seconds $((a + b))) $(seconds $((c + f + g))) $(seconds "$e") $(seconds "${h:-0}") $(seconds "$d")" ;;
            cpu[0-9]*) cores=$((cores + 1)) ;;
            btime) printf ',"booted":%d' "$a" ;;
        esac
    done <"$root/proc/stat"
    # shellcheck disable=SC2086 # five words on purpose
    set -- $total
    [ $# -eq 5 ] || return 0
    printf ',"cpu":{"cores":%d,"user":%s,"system":%s,"iowait":%s,"steal":%s,"idle":%s}' "$cores" "$@"
}

host_memory() {
    total=0 available=0 swap=0 swap_free=0
    while read -r key value _; do
        case $key in
            MemTotal:) total=$value ;;
            MemAvailable:) available=$value ;;
            SwapTotal:) swap=$value ;;
            SwapFree:) swap_free=$value ;;
        esac
    done <"$root/proc/meminfo"
    printf ',"memory":{"total":%d,"available":%d,"swap_total":%d,"swap_used":%d}' \
        $((total * 1024)) $((available * 1024)) $((swap * 1024)) $(((swap - swap_free) * 1024))
}

host_disk() {
    df -Pk / 2>/dev/null | {
        read -r _
        read -r _ size _ free _ || return 0
        is_whole "$size" && is_whole "$free" &&
            printf ',"disk":{"total":%d,"free":%d}' $((size * 1024)) $((free * 1024))
    }
}

host_io() {
    read_sectors=0 written_sectors=0 found=''
    while read -r _ _ name _ _ in _ _ _ out _; do
        case $name in
            loop* | ram* | zram* | dm-* | md* | sr* | fd*) continue ;;
        esac
        [ -d "$root/sys/block/$name" ] || continue
        read_sectors=$((read_sectors + in)) written_sectors=$((written_sectors + out)) found=yes
    done <"$root/proc/diskstats"
    [ -z "$found" ] || printf ',"io":{"read":%d,"write":%d}' $((read_sectors * 512)) $((written_sectors * 512))
}

# The interfaces with a device of their own, which are the physical ones: no loopback, bridge or veth. Without such,
# in a container say, the one that the default route leaves by.
network_interfaces() {
    interfaces=' '
    for device in "$root"/sys/class/net/*/device; do
        [ -e "$device" ] || continue
        device=${device%/device}
        interfaces="$interfaces${device##*/} "
    done
    [ "$interfaces" = ' ' ] && [ -r "$root/proc/net/route" ] || return 0
    while read -r name destination _; do
        [ "$destination" != 00000000 ] || interfaces=" $name "
    done <"$root/proc/net/route"
}

host_net() {
    received=0 sent=0 found=''
    network_interfaces
    while IFS=': ' read -r name in _ _ _ _ _ _ _ out _; do
        case $interfaces in
            *" $name "*) received=$((received + in)) sent=$((sent + out)) found=yes ;;
        esac
    done <"$root/proc/net/dev"
    if [ -n "$found" ]; then
        printf ',"net":{"rx":%d,"tx":%d}' "$received" "$sent"
    fi
}

host() {
    printf '"host":{"hostname":%s' "$(quoted "$(first_word "$root/proc/sys/kernel/hostname")")"
    printf ',"boot_id":%s' "$(quoted "$(first_word "$root/proc/sys/kernel/random/boot_id")")"
    load=$(first_word "$root/proc/loadavg")
    is_number "$load" && printf ',"load1":%s' "$load"
    host_cpu
    host_memory
    host_disk
    [ -r "$root/proc/diskstats" ] && host_io
    [ -r "$root/proc/net/dev" ] && host_net
    printf '}'
}

# One figure of nvidia-smi: "$1" is the key, "$2" the value, "$3" what it is multiplied by (1 where left out).
gpu_figure() {
    if is_whole "$2"; then
        printf ',"%s":%d' "$1" $(($2 * ${3:-1}))
    elif [ -z "${3:-}" ] && is_number "$2"; then
        printf ',"%s":%s' "$1" "$2"
    fi
}

gpu_row() {
    uuid=${2:-index-$1}
    printf '%s%s:{"index":%d,"state":"ok","name":%s' "$comma" "$(quoted "$uuid")" "$1" "$(quoted "$3")"
    gpu_figure utilization "$4"
    gpu_figure memory_busy "$5"
    gpu_figure memory_total "$6" 1048576
    gpu_figure memory_used "$7" 1048576
    gpu_figure memory_free "$8" 1048576
    shift 8
    gpu_figure temperature "$1"
    gpu_figure power_w "$2"
    gpu_figure power_limit_w "$3"
    gpu_figure sm_clock_mhz "$4"
    gpu_figure memory_clock_mhz "$5"
    printf '}'
    comma=,
}

gpu_query='index,uuid,name,utilization.gpu,utilization.memory,memory.total,memory.used,memory.free'
gpu_query="$gpu_query,temperature.gpu,power.draw,power.limit,clocks.sm,clocks.mem,driver_version"

gpus() {
    if ! command -v nvidia-smi >/dev/null 2>&1; then
        printf ',"gpus":{}'
        return
    fi
    table=$(limited 10 nvidia-smi --query-gpu="$gpu_query" --format=csv,noheader,nounits 2>&1) || table=''
    comma='' driver=''
    printf ',"gpus":{'
    while IFS=, read -r a b c d e f g h i j k l m n; do
        a=${a# } b=${b# } c=${c# } d=${d# } e=${e# } f=${f# } g=${g# } h=${h# } i=${i# } j=${j# } k=${k# } l=${l# } m=${m# }
        is_whole "$a" || continue
        driver=${n# }
        gpu_row "$a" "$b" "$c" "$d" "$e" "$f" "$g" "$h" "$i" "$j" "$k" "$l" "$m"
    done <<ROWS
$table
ROWS
    printf '}'
    [ -z "$driver" ] || printf ',"driver":{"source":"nvidia-smi","version":%s}' "$(quoted "$driver")"
}

# A command with a limit in seconds, where `timeout` is there.
limited() {
    limit=$1
    shift
    if command -v timeout >/dev/null 2>&1; then timeout "$limit" "$@"; else "$@"; fi
}

# wget of "$2" into "$1". busybox 1.35 dies of a segmentation fault with its own limit, -T.
fetch() {
    if command -v timeout >/dev/null 2>&1; then
        timeout 3 wget -Y off -O "$1" "$2"
    else
        wget -Y off -T 2 -O "$1" "$2"
    fi
}

# The HTTP status that "$1" answers; "refused", 000 for any other silence, "none" without a tool to ask with.
http_status() {
    if command -v curl >/dev/null 2>&1; then
        curl -s -o /dev/null -m 2 -w '%{http_code}' --noproxy '*' "$1" && return
        [ $? -ne 7 ] || printf ' refused'
    elif command -v wget >/dev/null 2>&1; then
        if said=$(fetch /dev/null "$1" 2>&1); then
            printf 200
            return
        fi
        case $said in
            *'onnection refused'*) printf refused ;;
            *)
                status=$(printf '%s\n' "$said" |
                    sed -n 's|.*HTTP/1\.[01] \([1-5][0-9][0-9]\).*|\1|p; s|.* ERROR \([1-5][0-9][0-9]\).*|\1|p' | tail -n 1)
                printf '%s' "${status:-000}"
                ;;
        esac
    else
        printf none
    fi
}

http_body() {
    if command -v curl >/dev/null 2>&1; then
        curl -s -m 2 --noproxy '*' "$1"
    elif command -v wget >/dev/null 2>&1; then
        fetch - "$1" 2>/dev/null
    fi | head -c 65536
}

# Reads the flags of process "$1" into http_port and http_address.
read_flags() {
    http_port=8000 http_address=127.0.0.1 allow_http=true wanted=''
    while read -r flag; do
        if [ -n "$wanted" ]; then
            flag="$wanted=$flag" wanted=''
        fi
        case $flag in
            --http-port | --http-address | --allow-http) wanted=$flag ;;
            --http-port=*) http_port=${flag#*=} ;;
            --http-address=*) http_address=${flag#*=} ;;
            --allow-http=*) allow_http=${flag#*=} ;;
        esac
    done <<FLAGS
$(tr '\000\n' '\n ' <"$root/proc/$1/cmdline" 2>/dev/null)
FLAGS
    case $http_address in
        0.0.0.0 | localhost | *[!0-9a-fA-F.:]*) http_address=127.0.0.1 ;;
        ::) http_address='[::1]' ;;
        *:*) http_address="[$http_address]" ;;
    esac
    is_whole "$http_port" || http_port=8000
}

# The state and its reason, from the HTTP status "$1".
state_of() {
    case $1 in
        200) printf 'ready' ;;
        400) printf 'not ready|it answers 400: a model is not ready' ;;
        503) printf 'not ready|it is shutting down' ;;
        403) printf 'restricted|its health is restricted (403)' ;;
        *refused) printf 'starting|its process lives and does not listen on port %s yet' "$http_port" ;;
        000) printf 'unreachable|its process lives and does not answer on port %s: it starts, or it hangs' "$http_port" ;;
        none) printf 'unreachable|neither curl nor wget is there to ask it, and no Python does' ;;
        off) printf 'unreachable|HTTP is off (--allow-http=false), and its state is told over HTTP' ;;
        *) printf 'unreachable|it answers %s when asked whether it is ready' "$1" ;;
    esac
}

# Adds the server with the process "$1" to servers, and its reasons.
server() {
    read_flags "$1"
    name=triton-$http_port
    case $servers in
        *"\"$name\":"*) name=triton-$1 ;; # in a container, say: the same port, somewhere else
    esac
    if [ "$allow_http" = false ] || [ "$allow_http" = 0 ]; then
        name=triton-$1
        told=$(state_of off)
    else
        url=http://$http_address:$http_port
        told=$(state_of "$(http_status "$url/v2/health/ready")")
    fi
    state=${told%%|*}
    json="{\"how\":\"process\",\"pid\":$1,\"state\":\"$state\""
    [ "$state" = ready ] || json="$json,\"reason\":$(quoted "${told#*|}")"
    if [ "$state" = ready ]; then
        version=$(http_body "$url/v2" | sed -n 's/.*"version" *: *"\([^"]*\).*/\1/p' | head -n 1)
        [ -z "$version" ] || json="$json,\"version\":$(quoted "$version")"
        json="$json,\"http\":$(quoted "$http_address:$http_port")"
    fi
    servers="$servers${servers:+,}$(quoted "$name"):$json}"
    unavailable "/servers/$name/models" "$no_python"
    unavailable "/servers/$name/restarts" "$no_python"
}

find_servers() {
    servers=''
    for comm in "$root"/proc/[0-9]*/comm; do
        if [ "$(first_word "$comm" 2>/dev/null)" = tritonserver ]; then
            pid=${comm%/comm}
            server "${pid##*/}"
        fi
    done
}

# Sleep in a way that a signal ends: a shell waits for a command in front before it heeds its traps.
doze() {
    sleep "$1" >/dev/null 2>&1 3<&- &
    sleeper=$!
    wait "$sleeper"
    sleeper=''
}

telemetry() {
    interval=${1:-1}
    is_number "$interval" || interval=1
    seq=0 due='' missed=0
    while :; do
        reasons=''
        now=$(date +%s)
        mono=$(first_word "$root/proc/uptime")
        if command -v nvidia-smi >/dev/null 2>&1; then
            unavailable /gpus "$no_python; nvidia-smi does not tell it"
        else
            unavailable /gpus "nvidia-smi is not there; $no_python"
        fi
        find_servers
        doc="{$(host)$(gpus),\"servers\":{$servers},\"unavailable\":{$reasons}}"
        head="{\"seq\":$seq,\"time\":$now,\"mono\":$mono,\"full\":true"
        [ "$missed" -eq 0 ] || head="$head,\"missed\":$missed"
        printf '%s,"doc":%s}\n' "$head" "$doc" || exit 0
        seq=$((seq + 1)) missed=0
        # Whole seconds are all that every sleep knows: what is due is counted in these.
        whole=${interval%%.*}
        [ "${whole:-0}" -ge 1 ] || whole=1
        due=$((${due:-$now} + whole)) later=$(date +%s)
        while [ "$due" -lt "$later" ]; do
            due=$((due + whole)) missed=$((missed + 1))
        done
        [ "$due" -le "$later" ] || doze $((due - later))
    done
}

facts() {
    reasons=''
    name=''
    while IFS='=' read -r key value; do
        [ "$key" != PRETTY_NAME ] || name=${value#\"}
    done 2>/dev/null <"$root/etc/os-release"
    unavailable '' "$no_python"
    printf '{"schema":"facts/1","os":{"pretty_name":%s},"kernel":{"release":%s,"machine":%s},"unavailable":{%s}}\n' \
        "$(quoted "${name%\"}")" "$(quoted "$(uname -r)")" "$(quoted "$(uname -m)")" "$reasons"
}

main() {
    export LC_ALL=C
    [ -z "${3:-}" ] || no_python="it takes Python 3.10 or newer on the droplet, and $3"
    printf '\001droplet-console/1 {"hello":1,"sh":true}\n'
    case ${1:-} in
        facts) facts ;;
        telemetry)
            # The end of standard input ends the script. A background command has no standard input of its own.
            exec 3<&0
            (
                cat >/dev/null
                kill -TERM $$
            ) <&3 >/dev/null 2>&1 &
            watcher=$!
            sleeper=''
            # shellcheck disable=SC2086 # no sleeper, no word
            trap 'kill "$watcher" $sleeper 2>/dev/null' EXIT
            trap 'exit 0' TERM HUP PIPE
            exec 3<&-
            telemetry "${2:-1}"
            ;;
        *)
            printf '{"error":"internal","message":"the fallback knows telemetry and facts","where":"fallback.sh"}\n'
            exit 70
            ;;
    esac
}

main "$@"
