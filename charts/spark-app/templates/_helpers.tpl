{{/* The name that all objects of a release begin with. */}}
{{- define "spark-app.fullname" -}}
{{- contains .Chart.Name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "spark-app.labels" -}}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "spark-app.selector" . }}
{{- end }}

{{- define "spark-app.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "spark-app.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "spark-app.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (include "spark-app.fullname" .) }}
{{- end }}

{{/* Where applications write their event logs. */}}
{{- define "spark-app.eventLogs" -}}
{{ required "eventLogs.location: where applications write their event logs, such as s3://bucket/folder" .Values.eventLogs.location }}
{{- end }}

{{/* The same as Spark names it. */}}
{{- define "spark-app.eventLogsOfSpark" -}}
{{ include "spark-app.eventLogs" . | replace "s3://" "s3a://" }}
{{- end }}

{{/* The properties by which an application is seen, with those by which its driver reaches the event logs. */}}
{{- define "spark-app.sparkProperties" -}}
{{- $logs := .Values.eventLogs -}}
spark.eventLog.enabled: "true"
{{- if $logs.claim }}
spark.eventLog.dir: file://{{ include "spark-app.eventLogs" . }}
spark.kubernetes.driver.volumes.persistentVolumeClaim.event-logs.mount.path: /event-logs
spark.kubernetes.driver.volumes.persistentVolumeClaim.event-logs.options.claimName: {{ $logs.claim }}
{{- else }}
spark.eventLog.dir: {{ include "spark-app.eventLogsOfSpark" . }}
spark.hadoop.fs.s3a.endpoint.region: {{ $logs.s3.region }}
{{- with $logs.s3.endpoint }}
spark.hadoop.fs.s3a.endpoint: {{ . }}
spark.hadoop.fs.s3a.path.style.access: "true"
{{- end }}
{{- with $logs.s3.secret }}
spark.kubernetes.driver.secretKeyRef.AWS_ACCESS_KEY_ID: {{ . }}:AWS_ACCESS_KEY_ID
spark.kubernetes.driver.secretKeyRef.AWS_SECRET_ACCESS_KEY: {{ . }}:AWS_SECRET_ACCESS_KEY
{{- end }}
{{- end }}
{{- if .Values.tls.spark }}
{{- /* Those of the compose stack with TLS, without its pages. */}}
{{- range .Files.Lines "files/spark-tls.conf" }}
{{- if regexMatch `^spark\.(authenticate|network|io)\.?` . }}
{{ regexReplaceAll ` +` . ": '" }}'
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* The same as lines of a spark-defaults.conf. */}}
{{- define "spark-app.sparkDefaults" -}}
{{- range $name, $value := include "spark-app.sparkProperties" . | fromYaml }}
{{ $name }} {{ $value }}
{{- end }}
{{- end }}

{{- define "spark-app.scheme" -}}
{{ ternary "https" "http" .Values.tls.enabled }}
{{- end }}

{{/* The Secret with certificate, key and authority. */}}
{{- define "spark-app.tlsSecret" -}}
{{- $own := ternary (printf "%s-tls" (include "spark-app.fullname" .)) "" .Values.tls.certManager.enabled }}
{{- required "tls.secret: a Secret with tls.crt, tls.key and ca.crt, or tls.certManager.enabled" (.Values.tls.secret | default $own) }}
{{- end }}

{{/* The files of the compose stack with TLS, under the same names; of clients, that of the authority alone. */}}
{{- define "spark-app.tlsVolume" -}}
{{- if .root.Values.tls.enabled }}
- name: tls
  secret:
    secretName: {{ include "spark-app.tlsSecret" .root }}
    defaultMode: 0440
    items:
      - {key: ca.crt, path: ca.pem}
      {{- if .isServer }}
      - {key: tls.crt, path: certificate.pem}
      - {key: tls.key, path: key.pem}
      {{- end }}
{{- end }}
{{- end }}

{{- define "spark-app.tlsMount" -}}
{{- if .Values.tls.enabled }}
- {name: tls, mountPath: /tls, readOnly: true}
{{- end }}
{{- end }}

{{/* What sends telemetry by OTLP trusts the authority. */}}
{{- define "spark-app.otlpTrust" -}}
{{- if .Values.tls.enabled }}
- {name: OTEL_EXPORTER_OTLP_CERTIFICATE, value: /tls/ca.pem}
{{- end }}
{{- end }}

{{/* Where programs send OTLP over HTTP. */}}
{{- define "spark-app.otlpEndpoint" -}}
{{ .Values.otlpEndpoint | default (printf "%s://%s-collector:4318" (include "spark-app.scheme" .) (include "spark-app.fullname" .)) }}
{{- end }}

{{/* The attributes of all telemetry of a pod: its cluster, and its namespace where the telemetry is about itself. */}}
{{- define "spark-app.resourceAttributes" -}}
{{- $attributes := list }}
{{- if .root.Values.clusterName }}
{{- $attributes = append $attributes (printf "k8s.cluster.name=%s" (urlquery .root.Values.clusterName | replace "+" "%20")) }}
{{- end }}
{{- if .isItself }}
{{- $attributes = append $attributes (printf "k8s.namespace.name=%s" .root.Release.Namespace) }}
{{- end }}
{{- with $attributes }}
- {name: OTEL_RESOURCE_ATTRIBUTES, value: {{ join "," . | quote }}}
{{- end }}
{{- end }}

{{- define "spark-app.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ . }}
runAsGroup: {{ . }}
fsGroup: {{ . }}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "spark-app.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* What every pod of the image has. */}}
{{- define "spark-app.pod" -}}
serviceAccountName: {{ include "spark-app.serviceAccount" . }}
automountServiceAccountToken: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
securityContext: {{ include "spark-app.podSecurity" 185 | nindent 2 }}
{{- end }}

{{/* The variables and the volume by which a program reaches the event logs. */}}
{{- define "spark-app.eventLogsEnvironment" -}}
{{- /* Java's and Python's name of it. */}}
- {name: AWS_REGION, value: {{ .Values.eventLogs.s3.region | quote }}}
- {name: AWS_DEFAULT_REGION, value: {{ .Values.eventLogs.s3.region | quote }}}
{{- with .Values.eventLogs.s3.endpoint }}
- {name: AWS_ENDPOINT_URL, value: {{ . | quote }}}
{{- end }}
{{- range $name := ternary (list "AWS_ACCESS_KEY_ID" "AWS_SECRET_ACCESS_KEY") list (ne .Values.eventLogs.s3.secret "") }}
- name: {{ $name }}
  valueFrom: {secretKeyRef: {name: {{ $.Values.eventLogs.s3.secret }}, key: {{ $name }}}}
{{- end }}
{{- end }}

{{- define "spark-app.eventLogsMount" -}}
{{- with .Values.eventLogs.claim }}
- {name: event-logs, mountPath: /event-logs, readOnly: true}
{{- end }}
{{- end }}

{{- define "spark-app.eventLogsVolume" -}}
{{- with .Values.eventLogs.claim }}
- {name: event-logs, persistentVolumeClaim: {claimName: {{ . }}, readOnly: true}}
{{- end }}
{{- end }}

{{- define "spark-app.claim" -}}
accessModes: [ReadWriteOnce]
{{- with .storageClass }}
storageClassName: {{ . }}
{{- end }}
resources: {requests: {storage: {{ .size }}}}
{{- end }}

{{/* The configuration of the compose stack's collector, with the endpoints of this chart. */}}
{{- define "spark-app.collectorConfig" -}}
{{- $config := .Files.Get "files/collector.yaml" | fromYaml }}
{{- $exporters := $config.exporters }}
{{- $pipelines := $config.service.pipelines }}
{{- $_ := set $exporters "debug" (dict "verbosity" .Values.collector.verbosity) }}
{{- $values := .Values.collector }}
{{- range $signal := list
      (dict "endpoint" $values.traces.endpoint "exporter" "otlp_grpc/jaeger" "key" "endpoint" "pipelines" (list "traces"))
      (dict "endpoint" $values.metrics.endpoint "exporter" "otlp_http/prometheus" "key" "endpoint" "pipelines" (list "metrics" "metrics/spans"))
      (dict "endpoint" $values.logs.endpoint "exporter" "elasticsearch" "key" "endpoints" "pipelines" (list "logs")) }}
{{- if $signal.endpoint }}
{{- $_ := set (index $exporters $signal.exporter) $signal.key (ternary (list $signal.endpoint) $signal.endpoint (eq $signal.key "endpoints")) }}
{{- else }}
{{- $_ := unset $exporters $signal.exporter }}
{{- range $name := $signal.pipelines }}
{{- $_ := set (index $pipelines $name) "exporters" (list "debug") }}
{{- end }}
{{- end }}
{{- end }}
{{- if .Values.tls.enabled }}
{{- include "spark-app.collectorTls" (dict "config" $config "values" $values "files" .Files) }}
{{- end }}
{{- /* Pods write no files that the collector could read: see podLogs. */}}
{{- $_ := unset $config.receivers "file_log" }}
{{- $_ := set $pipelines.logs "receivers" (list "otlp") }}
{{- toYaml $config }}
{{- end }}

{{/* Changes the configuration to that of the compose stack with TLS; back ends are asked by TLS where their address has https. */}}
{{- define "spark-app.collectorTls" -}}
{{- $tls := .files.Get "files/collector-tls.yaml" | fromYaml }}
{{- $_ := mustMergeOverwrite .config (dict "extensions" $tls.extensions "receivers" (omit $tls.receivers "kafka_metrics")) }}
{{- /* Its port for its own metrics has no TLS: they are sent, or nowhere. */}}
{{- if .values.metrics.endpoint }}
{{- $telemetry := $tls.service.telemetry }}
{{- $sent := (index $telemetry.metrics.readers 0).periodic.exporter.otlp }}
{{- $_ := set $sent "endpoint" (printf "%s/v1/metrics" .values.metrics.endpoint) }}
{{- $_ := set .config.service "telemetry" $telemetry }}
{{- else }}
{{- $_ := set .config.service "telemetry" (dict "metrics" (dict "level" "none")) }}
{{- end }}
{{- range list .config.extensions.health_check.tls .config.receivers.otlp.protocols.grpc.tls .config.receivers.otlp.protocols.http.tls }}
{{- $_ := set . "reload_interval" "1h" }}
{{- end }}
{{- end }}

{{/* Reads the logs of pods as the compose stack's collector reads files, and sends them to the endpoint. */}}
{{- define "spark-app.podLogsConfig" -}}
{{- $config := .Files.Get "files/collector.yaml" | fromYaml }}
{{- $receiver := $config.receivers.file_log }}
{{- $files := list }}
{{- range $namespace := .Values.podLogs.namespaces | default (list .Release.Namespace) }}
{{- range $role := list "driver" "executor" }}
{{- $files = append $files (printf "%s/%s_*/spark-kubernetes-%s/*.log" $.Values.podLogs.directory $namespace $role) }}
{{- end }}
{{- end }}
{{- /* The last operator of the stack's names the service after a file. */}}
{{- $name := dict "type" "add" "field" "resource[\"service.name\"]" "value" "EXPR(resource[\"k8s.container.name\"] == \"spark-kubernetes-driver\" ? \"spark-driver\" : \"spark-executor\")" }}
{{- $operators := append (prepend (initial $receiver.operators) (dict "type" "container")) $name }}
{{- with .Values.clusterName }}
{{- $operators = append $operators (dict "type" "add" "field" "resource[\"k8s.cluster.name\"]" "value" .) }}
{{- end }}
{{- $_ := set $receiver "include" $files }}
{{- $_ := set $receiver "include_file_path" true }}
{{- $_ := set $receiver "operators" $operators }}
extensions:
  health_check: {endpoint: "0.0.0.0:13133", path: /health}
  file_storage: {directory: /var/lib/otelcol}
receivers:
  file_log: {{ toYaml $receiver | nindent 4 }}
processors:
  memory_limiter: {{ toYaml $config.processors.memory_limiter | nindent 4 }}
exporters:
  otlp_http:
    endpoint: {{ include "spark-app.otlpEndpoint" . }}
    {{- if .Values.tls.enabled }}
    tls: {ca_file: /tls/ca.pem}
    {{- end }}
    retry_on_failure: {max_elapsed_time: 24h}
    sending_queue: {queue_size: 5000, storage: file_storage}
service:
  extensions: [health_check, file_storage]
  {{- /* Its port for its own metrics has no TLS. */}}
  telemetry: {{ toYaml (ternary (dict "metrics" (dict "level" "none")) $config.service.telemetry .Values.tls.enabled) | nindent 4 }}
  pipelines:
    logs:
      receivers: [file_log]
      processors: [memory_limiter]
      exporters: [otlp_http]
{{- end }}

{{/* A pod that runs pipelines, by the command that it gets: their folder of tables and runs is the claim. */}}
{{- define "spark-app.pipelinesPod" -}}
{{- $pipelines := .root.Values.pipelines -}}
{{ include "spark-app.pod" .root }}
terminationGracePeriodSeconds: {{ .stopSeconds | default 30 }}
{{- with .restartPolicy }}
restartPolicy: {{ . }}
{{- end }}
containers:
  - name: {{ .name }}
    image: {{ $pipelines.image | default (include "spark-app.image" .root) }}
    imagePullPolicy: {{ .root.Values.image.pullPolicy }}
    args: {{ toJson .args }}
    {{- with $pipelines.folder }}
    workingDir: {{ . }}
    {{- end }}
    env:
      - {name: OTEL_EXPORTER_OTLP_ENDPOINT, value: {{ include "spark-app.otlpEndpoint" .root | quote }}}
      - {name: SPARK_APP_ENVIRONMENT, value: {{ .root.Values.environment | quote }}}
      {{- include "spark-app.otlpTrust" .root | nindent 6 }}
      {{- include "spark-app.resourceAttributes" (dict "root" .root "isItself" true) | nindent 6 }}
      {{- if and $pipelines.operator.enabled .root.Values.bridge.enabled }}
      # The bridge reads what the driver logs.
      - {name: SPARK_APP_EVENT_LOG_EXPORTER, value: bridge}
      {{- end }}
      {{- if $pipelines.profile }}
      - {name: SPARK_APP_PROFILE, value: "1"}
      {{- if $pipelines.operator.enabled }}
      # All pods mount the claim.
      - {name: SPARK_APP_PROFILE_EXECUTORS, value: /data}
      {{- end }}
      {{- end }}
      {{- with $pipelines.env }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
    resources: {{ toYaml .resources | nindent 6 }}
    securityContext: {{ include "spark-app.containerSecurity" . | nindent 6 }}
    volumeMounts:
      - {name: data, mountPath: /data}
      - {name: home, mountPath: /opt/home}
      - {name: scratch, mountPath: /scratch}
      - {name: tmp, mountPath: /tmp}
      {{- include "spark-app.tlsMount" .root | nindent 6 }}
volumes:
  {{- include "spark-app.tlsVolume" (dict "root" .root "isServer" false) | nindent 2 }}
  - {name: data, persistentVolumeClaim: {claimName: {{ required "pipelines.claim: a PersistentVolumeClaim for tables, checkpoints and runs" $pipelines.claim }}}}
  - {name: home, emptyDir: {}}
  - {name: scratch, emptyDir: {}}
  - {name: tmp, emptyDir: {}}
{{- end }}

{{/* The same pod as a template for Spark, which has the account, the image and the resources from the application, and a volume of its
own for what it spills. */}}
{{- define "spark-app.sparkPodTemplate" -}}
{{- $pod := include "spark-app.pipelinesPod" . | fromYaml }}
{{- $container := index $pod.containers 0 }}
{{- $node := index (.root.Files.Get "files/pod.yaml" | fromYaml).spec.containers 0 }}
{{- $_ := set $container "name" (printf "spark-kubernetes-%s" .role) }}
{{- /* By which Python reaches the event log; the keys are those of the application's properties. */}}
{{- $env := concat $container.env $node.env }}
{{- range include "spark-app.eventLogsEnvironment" .root | fromYamlArray }}
{{- $env = ternary (append $env .) $env (hasKey . "value") }}
{{- end }}
{{- $_ := set $container "env" $env }}
{{- range $key, $list := dict "volumeMounts" $container "volumes" $pod }}
{{- $kept := list }}
{{- range get $list $key }}
{{- $kept = ternary $kept (append $kept .) (eq .name "scratch") }}
{{- end }}
{{- $_ := set $list $key $kept }}
{{- end }}
{{- $_ := set $pod "containers" (list (omit $container "args" "image" "imagePullPolicy" "resources")) }}
spec: {{ omit $pod "serviceAccountName" "automountServiceAccountToken" "restartPolicy" | toYaml | nindent 2 }}
{{- end }}

{{/* Pipelines as an application of Kubeflow's operator, by the arguments of spark-app. */}}
{{- define "spark-app.sparkApplication" -}}
{{- $pipelines := .root.Values.pipelines -}}
type: Python
mode: cluster
sparkVersion: {{ $pipelines.operator.sparkVersion }}
image: {{ $pipelines.image | default (include "spark-app.image" .root) }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
mainApplicationFile: local:///opt/venv/bin/spark-app.py
arguments: {{ toJson .args }}
restartPolicy: {type: {{ .restart }}}
sparkConf: {{ mergeOverwrite (include "spark-app.sparkProperties" .root | fromYaml) $pipelines.operator.sparkConf | toYaml | nindent 2 }}
{{- range $role := list "driver" "executor" }}
{{ $role }}: {{ get $pipelines.operator $role | toYaml | nindent 2 }}
  {{- if eq $role "driver" }}
  serviceAccount: {{ $.root.Values.spark.serviceAccount.name }}
  {{- end }}
  template: {{ include "spark-app.sparkPodTemplate" (merge (dict "role" $role "name" $role) $) | nindent 4 }}
{{- end }}
{{- end }}

{{/* The jobs of the chart's own monitors, by component, with the names that they have in the compose stack. */}}
{{- define "spark-app.jobs" -}}
bridge: spark-bridge
collector: otel-collector
{{- end }}

{{- define "spark-app.monitoringLabels" -}}
{{ include "spark-app.labels" . }}
{{- with .Values.monitoring.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Not empty if a query asks about a job that only the compose stack has. */}}
{{- define "spark-app.otherJobs" -}}
{{- $jobs := include "spark-app.jobs" "" | fromYaml | values }}
{{- range regexFindAll `\bjob=~?\\?"[^"\\]*` . -1 }}
{{- $job := regexReplaceAll `^.*"` . "" }}
{{- if not (has $job $jobs) }}{{ $job }} {{ end }}
{{- end }}
{{- end }}

{{/* Not empty if a dashboard has a query about something that the chart may have. */}}
{{- define "spark-app.hasQueries" -}}
{{- range regexFindAll `"expr": "(?:[^"\\]|\\.)*"` . -1 }}
{{- if not (include "spark-app.otherJobs" .) }}yes {{ end }}
{{- end }}
{{- end }}

{{/* The annotations of an alert, with the links that have an address. */}}
{{- define "spark-app.annotations" -}}
{{- $kept := dict }}
{{- range $name, $text := .annotations }}
{{- range $link, $address := $.links }}
{{- $label := printf "{{ $externalLabels.%s }}" $link }}
{{- $text = ternary (replace $label (trimSuffix "/" $address) $text) $text (ne $address "") }}
{{- end }}
{{- if not (contains "$externalLabels" $text) }}
{{- $_ := set $kept $name $text }}
{{- end }}
{{- end }}
{{- toYaml $kept }}
{{- end }}

{{/* The rules of the compose stack without those that ask about its other jobs, or about nothing, as its Watchdog does. */}}
{{- define "spark-app.ruleGroups" -}}
{{- $links := .Values.monitoring.rules.links }}
{{- $links = dict "runbook" $links.runbook "grafana" $links.grafana "jaeger" $links.jaeger }}
{{- $groups := list }}
{{- range $path, $content := .Files.Glob "files/rules/*.yml" }}
{{- range $group := (toString $content | fromYaml).groups }}
{{- $rules := list }}
{{- range $rule := $group.rules }}
{{- if and (not (include "spark-app.otherJobs" $rule.expr)) (ne $rule.expr "vector(1)") }}
{{- with $rule.annotations }}
{{- $_ := set $rule "annotations" (include "spark-app.annotations" (dict "annotations" . "links" $links) | fromYaml) }}
{{- end }}
{{- $rules = append $rules $rule }}
{{- end }}
{{- end }}
{{- if $rules }}
{{- $groups = append $groups (dict "name" $group.name "rules" $rules) }}
{{- end }}
{{- end }}
{{- end }}
{{- toYaml $groups }}
{{- end }}
