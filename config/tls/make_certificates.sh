#!/usr/bin/env bash
# Makes the certificates of docker-compose.tls.yml, each once: make_certificates.sh [--rotate]
#
# The first start makes an authority, and a certificate for each service in a volume of its own. Later starts renew what ends
# within 30 days; --rotate makes all certificates and secrets anew, with the same authority: restart the stack after it.
set -euo pipefail
umask 077
cd "${CERTIFICATES:-/certificates}"
[[ $# -eq 0 || $* == --rotate ]] || { echo "make_certificates.sh takes nothing but --rotate" >&2; exit 2; }
rotate=${1:-}
month=2592000

# Keys and certificates of 256-bit elliptic curves. The options of each are those that a strict client asks for.
request=(openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc)

authority() {
    openssl x509 -in authority/ca.pem -noout -checkend "$month" >/dev/null 2>&1 && return
    "${request[@]}" -keyout authority/ca.key -out authority/ca.pem -days 3650 -subj "/CN=spark-app authority $(date +%F)" \
        -addext basicConstraints=critical,CA:TRUE,pathlen:0 -addext keyUsage=critical,keyCertSign,cRLSign
    chmod 755 authority
    chmod 644 authority/ca.pem
    echo "made an authority"
}

# Whether a certificate is of the present authority, lasts another month, and need not be made anew.
is_good() {
    [[ ! $rotate ]] && openssl verify -CAfile authority/ca.pem "$1/certificate.pem" >/dev/null 2>&1 &&
        openssl x509 -in "$1/certificate.pem" -noout -checkend "$month" >/dev/null
}

# certificate FOLDER UID NAME...: what a service of that user needs, and only that user can read but for the certificates.
certificate() {
    local folder=$1 user=$2 name names=DNS:localhost,IP:127.0.0.1
    shift 2
    is_good "$folder" && return
    for name in "$@" ${TLS_NAMES:-}; do
        [[ $name =~ ^[0-9.]+$|: ]] && names+=",IP:$name" || names+=",DNS:$name"
    done
    rm -f "$folder"/*
    "${request[@]}" -keyout "$folder/key.pem" -out "$folder/certificate.pem" -days 397 -subj "/CN=$1" \
        -CA authority/ca.pem -CAkey authority/ca.key -addext "subjectAltName=$names" \
        -addext basicConstraints=critical,CA:FALSE -addext keyUsage=critical,digitalSignature \
        -addext extendedKeyUsage=serverAuth,clientAuth
    cp authority/ca.pem "$folder"
    cat "$folder/key.pem" "$folder/certificate.pem" >"$folder/key-and-certificate.pem"
    [[ $folder != spark ]] || of_spark
    chmod 755 "$folder"
    chmod 400 "$folder"/*
    chmod 444 "$folder"/{ca,certificate}.pem
    chown "$user:$user" "$folder"/*
    echo "made the certificate of $*"
}

# Spark reads its key from a Java key store, and what it shares with its other processes from properties. Processes that run go on
# with what they have read: a renewal leaves the secret as it is, and --rotate the password, by which a driver opens a new key store.
of_spark() {
    [[ -e authority/password ]] || openssl rand -hex 32 >authority/password
    [[ -e authority/secret && ! $rotate ]] || openssl rand -hex 32 >authority/secret
    openssl pkcs12 -export -in spark/certificate.pem -inkey spark/key.pem -certfile spark/ca.pem -name spark \
        -out spark/keystore.p12 -passout file:authority/password
    printf '%s\n' "spark.authenticate.secret $(<authority/secret)" "spark.ssl.keyStorePassword $(<authority/password)" \
        "spark.ssl.keyPassword $(<authority/password)" >spark/secrets.conf
}

# What Java trusts: the authorities of the image, and that of the stack.
trust_of_java() {
    [[ java/cacerts -nt authority/ca.pem ]] && return
    cp /etc/ssl/certs/java/cacerts java/cacerts.new
    keytool -importcert -noprompt -alias spark-app -file authority/ca.pem -keystore java/cacerts.new -storepass changeit 2>/dev/null
    chmod 444 java/cacerts.new
    chmod 755 java
    mv java/cacerts.new java/cacerts
}

authority
certificate kafka 1000 kafka
certificate otel-collector 10001 otel-collector
certificate otel-collector-ready 65534 otel-collector-ready
certificate jaeger 10001 jaeger
certificate prometheus 65534 prometheus
certificate alertmanager 65534 alertmanager
certificate elasticsearch 1000 elasticsearch
certificate kibana 1000 kibana
certificate grafana 472 grafana
certificate spark 185 spark-master spark-master-2 spark-worker-1 spark-worker-2 spark-history spark-bridge reports jupyter \
    zookeeper-1 zookeeper-2 zookeeper-3
# Of docker-compose.s3-tls.yml.
[[ ! -d s3 ]] || certificate s3 0 s3
[[ ! -d java ]] || trust_of_java
