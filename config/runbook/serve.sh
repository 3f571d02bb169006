#!/bin/sh
# Serves docs/runbook.md as one page with an anchor for each section: alerts link to them. SERVE is the program that serves it,
# where BusyBox does not know TLS: docker-compose.tls.yml.
set -eu
command -v busybox >/dev/null || busybox() { "$@"; }
cd /tmp
{
    echo '<!DOCTYPE html><meta charset="utf-8"><title>Runbook</title><pre style="white-space: pre-wrap; max-width: 60em">'
    busybox awk '{ gsub(/&/, "\\&amp;"); gsub(/</, "\\&lt;"); gsub(/>/, "\\&gt;") }
        /^## / { title = substr($0, 4); print "<b id=\"" tolower(title) "\">" title "</b>"; next }
        { print }' /runbook/runbook.md
    echo '</pre>'
} >index.html
exec ${SERVE:-busybox httpd -f -p 8080}
