#!/usr/bin/env bash
# Runs one of the ZooKeepers that elect the leading master, from Spark's own jars: run_zookeeper.sh SERVER...
# SERVER are the names of all of them; that of this container is one.
set -euo pipefail

settings=$(mktemp --suffix .cfg)
# A session, and with it a lead, ends after at most 20 ticks without a sign of life.
printf '%s\n' tickTime=500 initLimit=20 syncLimit=10 dataDir=/state clientPort=2181 admin.enableServer=false \
    autopurge.purgeInterval=24 >"$settings"
# With a certificate, as docker-compose.ha-tls.yml has it, only this container is served without TLS, and only who has a certificate
# of the same authority by TLS.
if [[ -e /tls/key-and-certificate.pem ]]; then
    printf '%s\n' clientPortAddress=127.0.0.1 secureClientPort=2281 sslQuorum=true \
        serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory \
        ssl.{,quorum.}keyStore.location=/tls/key-and-certificate.pem ssl.{,quorum.}trustStore.location=/tls/ca.pem >>"$settings"
fi
number=0
for server in "$@"; do
    number=$((number + 1))
    echo "server.$number=$server:2888:3888" >>"$settings"
    [[ $server != "$HOSTNAME" ]] || echo "$number" >/state/myid
done
exec java "-Xmx$SPARK_DAEMON_MEMORY" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \
    -Dlog4j2.configurationFile=file:/app/config/spark/log4j2-daemon.properties "-Dapp.log.file=/data/logs/$HOSTNAME.jsonl" \
    -cp "$SPARK_HOME/jars/*" org.apache.zookeeper.server.quorum.QuorumPeerMain "$settings"
