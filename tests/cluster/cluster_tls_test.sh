#!/usr/bin/env bash
# Servers that speak TLS:  cluster_tls_test.sh DRIVER
# Proves that a filter on a server and on a cluster works over TLS, and that a server whose
# certificate is not right is not spoken to: each such case is an error at once, whose text says
# what is wrong and which setting helps.
. "$(dirname "$0")/cluster_helpers.sh"
if ! command -v openssl >/dev/null; then
    echo "skipped: there is no openssl here, to make certificates"
    exit 77
fi

# ---- Certificates ----------------------------------------------------------------------------

certs=$folder/certs
mkdir "$certs"

# authority NAME: makes NAME.pem and NAME.key, by which other certificates are signed.
authority() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 \
        -subj "/CN=$1" -keyout "$certs/$1.key" -out "$certs/$1.pem" 2>>"$certs/log"
}

# certificate NAME AUTHORITY SUBJECT_ALT_NAME [LAST_DAY]: makes NAME.pem and NAME.key; LAST_DAY
# is as YYYYMMDD.
certificate() {
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$1" \
        -keyout "$certs/$1.key" -out "$certs/$1.csr" 2>>"$certs/log" &&
        : >"$certs/index" && mkdir -p "$certs/new" &&
        printf '%s\n' "[ca]" "default_ca = it" "[it]" "database = $certs/index" \
            "new_certs_dir = $certs/new" "rand_serial = yes" "default_md = sha256" \
            "policy = any" "[any]" "commonName = supplied" "[names]" \
            "subjectAltName = $3" >"$certs/config" &&
        openssl ca -batch -notext -config "$certs/config" -extensions names \
            -cert "$certs/$2.pem" -keyfile "$certs/$2.key" -startdate 20200101000000Z \
            -enddate "${4:-20990101}000000Z" -in "$certs/$1.csr" -out "$certs/$1.pem" \
            2>>"$certs/log"
}

if ! { authority ours && authority foreign &&
    certificate server ours IP:127.0.0.1 && certificate expired ours IP:127.0.0.1 20200201 &&
    certificate named ours DNS:filters.example && certificate strange foreign IP:127.0.0.1 &&
    certificate client ours DNS:client && certificate stranger foreign DNS:client; }; then
    cat "$certs/log"
    exit 1
fi

# with_certificate NAME [CONFIG...]: prints the settings of a server with this certificate, one
# a line.
with_certificate() {
    printf '%s\n' --port 0 --tls-port @PORT@ --tls-ca-cert-file "$certs/ours.pem" \
        --tls-cert-file "$certs/$1.pem" --tls-key-file "$certs/$1.key" "${@:2}"
}

# with_server NAME [CONFIG...]: starts a server with this certificate, which asks clients for
# none, and talks to it.
with_server() {
    local config
    mapfile -t config < <(with_certificate "$1" --tls-auth-clients no "${@:2}")
    servers_start_single "${config[@]}" || exit 1
    entry=$((${#PORTS[@]} - 1))
}

SERVER_CLI_OPTIONS=(--tls --cacert "$certs/ours.pem" --cert "$certs/client.pem"
    --key "$certs/client.key")
scheme=rediss trust=cacert=$certs/ours.pem
url() {
    local settings=$trust${2:+${trust:+&}$2}
    echo "$scheme://127.0.0.1:${PORTS[entry]}/$1${settings:+?$settings}"
}

# refused TEXT NAME[?SETTINGS]: the server is not spoken to, and the problem has the text.
refused() {
    fails "$1" UNREACHABLE open "$2"
    check "it says so: $1: $(tail -n 1 out)" mentions "$1"
}

# ---- One server --------------------------------------------------------------------------------

# More than a round has room for at once comes back: GETRANGE replies of 20000 keys.
test_single() {
    with_server server
    filled single 20000 capacity=50000 fpr=1e-4
    all_there single
    drive ask single keys=keys batch=20000 absent=5000
    check "large batches: $(tail -n 1 out)" gives none
    check "few others are there" [ "$(told absent_present)" -lt 20 ]
    succeeds "verify" verify single
    fails "made twice" TAKEN create single capacity=10
    succeeds "delete" delete single
    fails "it is gone" MISSING open single
}

test_grows() {
    with_server server
    filled grows 5000 capacity=1000 grow=1
    check "layers: $(tail -n 1 out)" above layers 2
    all_there grows
}

# A server is what its certificate says, or it is not spoken to.
test_certificates() {
    with_server expired
    refused "certificate has expired" n
    with_server named
    refused "another name: .* by sni=" n
    refused "another name" "n?sni=other.example"
    refused "another name" "n?sni=127.0.0.1"
    fails "the name is right" MISSING open "n?sni=filters.example"
    with_server strange
    refused "nobody who is trusted here: .* by cacert=" n
    trust=cacert=$certs/foreign.pem
    fails "its own authority" MISSING open n
    trust=cacert=$certs
    refused "nobody who is trusted here" n
    trust=
    refused "nobody who is trusted here" n
    fails "insecure" MISSING open "n?insecure=yes"
    trust=cacert=$certs/none.pem
    refused "cacert=.*none.pem" n
    trust=cacert=$certs/ours.key
    refused "cacert=.*ours.key" n
    trust=cacert=$certs/ours.pem
}

# The name is verified against the host, if no other one is given.
test_host() {
    with_server named
    local port=${PORTS[entry]}
    run open "rediss://localhost:$port/n?$trust"
    check "localhost is not in it: $(tail -n 1 out)" mentions "another name"
}

# The server asks for a certificate of its clients.
test_mutual() {
    with_server server --tls-auth-clients yes
    refused "certificate of its clients.* cert= and key=" n
    refused "trust who made the certificate of cert=" \
        "n?cert=$certs/stranger.pem&key=$certs/stranger.key"
    refused "key=.*strange" "n?cert=$certs/client.pem&key=$certs/strange.key"
    refused "cert=.*none" "n?cert=$certs/none.pem&key=$certs/strange.key"
    local own="cert=$certs/client.pem&key=$certs/client.key"
    succeeds "ours" create "mutual?$own" capacity=1000
    succeeds "add" add "mutual?$own" count=500
    all_there "mutual?$own" 500
}

# TLS 1.2 tells what it wants in other words.
test_old_version() {
    with_server server --tls-protocols TLSv1.2
    fails "TLS 1.2" MISSING open n
    with_server server --tls-protocols TLSv1.2 --tls-auth-clients yes
    refused "certificate of its clients .cert= and key=" n
}

# ---- The wrong scheme --------------------------------------------------------------------------

test_schemes() {
    with_server server
    scheme=redis trust=
    refused "it speaks TLS: write rediss://" n
    scheme=rediss trust=cacert=$certs/ours.pem
    servers_start_single || exit 1
    entry=$((${#PORTS[@]} - 1))
    fails "no TLS" UNREACHABLE open "n?timeout=500ms"
    check "says so: $(tail -n 1 out)" mentions "does not speak TLS.* write redis://"
    scheme=valkey trust=
    fails "a plain server" MISSING open n
    scheme=valkeys trust=cacert=$certs/ours.pem
}

# ---- A cluster -----------------------------------------------------------------------------------

test_cluster() {
    local config first=${#PORTS[@]}
    mapfile -t config < <(with_certificate server --tls-auth-clients no --tls-cluster yes \
        --tls-replication yes)
    servers_start_cluster 3 0 "${config[@]}" || exit 1
    entry=$first
    filled spread 20000 capacity=5000000 fpr=1e-4 partitions=96
    drive open spread
    check "on all masters: $(tail -n 1 out)" is nodes 3
    all_there spread
    succeeds "verify" verify spread
    start_crowd spread adders=2 askers=2
    crowd_adds 2000
    server_cli "$first" client kill type normal skipme yes >/dev/null
    server_cli $((first + 1)) client kill type normal skipme yes >/dev/null
    crowd_adds 2000
    stop_crowd
    check "no errors: $(tail -n 1 out)" is errors 0
    scheme=redis trust=
    refused "it speaks TLS: write rediss://" spread
    scheme=rediss trust=cacert=$certs/ours.pem
}

run_tests
