{{/* "true" on PostgreSQL, and nothing on SQLite. */}}
{{- define "flux-resourceset.onPostgres" -}}
{{- if or .Values.postgres.existingSecret .Values.postgres.url -}}true{{- end -}}
{{- end }}

{{/* Stops where values contradict each other. Every template that makes a pod comes by here. */}}
{{- define "flux-resourceset.checkDatabase" -}}
{{- $values := .Values -}}
{{- $postgres := $values.postgres -}}
{{- range $name, $url := dict "postgres.url" $postgres.url "postgres.readers.url" $postgres.readers.url -}}
{{- if regexMatch "(^[^:]*://[^/?#]*:[^/?#]*@)|([?&](ssl)?password=)" $url -}}
{{- fail (printf "%s contains a password: Helm stores values in plain text; put the password into the Secret, under the key postgres.passwordKey" $name) -}}
{{- end -}}
{{- end -}}
{{- if include "flux-resourceset.onPostgres" . -}}
{{- if $values.storage.existingClaim -}}
{{- fail "storage.existingClaim is the volume of a SQLite file, and postgres is set: leave one of them empty (docs/postgresql.md describes the move)" -}}
{{- end -}}
{{- if and $values.read.autoscaling.enabled (lt (int $values.read.autoscaling.maxReplicas) (int $values.read.autoscaling.minReplicas)) -}}
{{- fail "read.autoscaling.maxReplicas is less than read.autoscaling.minReplicas" -}}
{{- end -}}
{{- else -}}
{{- if or $postgres.readers.existingSecret $postgres.readers.url -}}
{{- fail "postgres.readers is set and postgres is not: readers and writers would have different databases; set postgres.existingSecret" -}}
{{- end -}}
{{- if or $postgres.tls.mode $postgres.tls.caSecret $postgres.maxStaleness $postgres.firstInstallation -}}
{{- fail "postgres.tls, postgres.firstInstallation and postgres.maxStaleness are for PostgreSQL: set postgres.existingSecret too" -}}
{{- end -}}
{{- if gt (int $values.crud.replicas) 1 -}}
{{- fail "crud.replicas is more than 1 on SQLite: one writer at a time, because the file is on a volume of one node; set postgres.existingSecret for more" -}}
{{- end -}}
{{- if $values.read.autoscaling.enabled -}}
{{- fail "read.autoscaling needs PostgreSQL: on SQLite all pods share one node, so more of them do not help; set postgres.existingSecret, or read.replicas" -}}
{{- end -}}
{{- if eq $values.topologySpread "DoNotSchedule" -}}
{{- fail "topologySpread=DoNotSchedule needs PostgreSQL: on SQLite readers and writer share a file and with it a node; set postgres.existingSecret" -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* The Secret and the URL of a mode, as JSON: readers can have their own. */}}
{{- define "flux-resourceset.login" -}}
{{- $postgres := .root.Values.postgres -}}
{{- $from := $postgres -}}
{{- if and (ne .mode "crud") (or $postgres.readers.existingSecret $postgres.readers.url) -}}
{{- $from = $postgres.readers -}}
{{- end -}}
{{- dict "secret" $from.existingSecret "url" $from.url | toJson -}}
{{- end }}

{{/* The variables that say where the fleet is kept. Called with a dict: root, mode. */}}
{{- define "flux-resourceset.databaseEnv" -}}
{{- $postgres := .root.Values.postgres -}}
{{- if include "flux-resourceset.onPostgres" .root }}
{{- $login := include "flux-resourceset.login" . | fromJson }}
- name: STORE_BACKEND
  value: postgres
- name: DATABASE_URL
  {{- if $login.url }}
  value: {{ $login.url | quote }}
  {{- else }}
  valueFrom:
    secretKeyRef:
      name: {{ $login.secret | quote }}
      key: {{ $postgres.urlKey | quote }}
  {{- end }}
{{- if and (eq .mode "crud") $postgres.firstInstallation }}
- name: DATABASE_MODE # begins a fleet where there is none
  value: rwc
{{- end }}
{{- if and $login.url $login.secret }}
- name: DATABASE_PASSWORD_FILE # read again for every connection, so that a new password needs no restart
  value: /postgres/password
{{- end }}
{{- if or $postgres.tls.mode $postgres.tls.caSecret }}
- name: PGSSLMODE
  value: {{ $postgres.tls.mode | default "verify-full" }}
{{- end }}
{{- if $postgres.tls.caSecret }}
- name: PGSSLROOTCERT
  value: /postgres-ca/ca.crt
{{- end }}
{{- else }}
- name: STORE_BACKEND
  value: sqlite
- name: DATABASE_URL
  value: sqlite:///var/lib/flux-resourceset/flux-resourceset.db?mode={{ eq .mode "crud" | ternary "rwc" "ro" }}
{{- end }}
{{- end }}

{{- define "flux-resourceset.databaseMounts" -}}
{{- if include "flux-resourceset.onPostgres" .root }}
{{- $login := include "flux-resourceset.login" . | fromJson }}
{{- if and $login.url $login.secret }}
- name: postgres
  mountPath: /postgres # no subPath: a file that is mounted with one never changes
  readOnly: true
{{- end }}
{{- if .root.Values.postgres.tls.caSecret }}
- name: postgres-ca
  mountPath: /postgres-ca
  readOnly: true
{{- end }}
{{- else }}
- name: data
  mountPath: /var/lib/flux-resourceset
  readOnly: {{ ne .mode "crud" }}
{{- end }}
{{- end }}

{{- define "flux-resourceset.databaseVolumes" -}}
{{- $postgres := .root.Values.postgres -}}
{{- if include "flux-resourceset.onPostgres" .root }}
{{- $login := include "flux-resourceset.login" . | fromJson }}
{{- if and $login.url $login.secret }}
- name: postgres
  secret:
    secretName: {{ $login.secret | quote }}
    defaultMode: 0440
    items:
      - key: {{ $postgres.passwordKey | quote }}
        path: password
{{- end }}
{{- with $postgres.tls.caSecret }}
- name: postgres-ca
  secret:
    secretName: {{ . | quote }}
    defaultMode: 0444
    items: # only this: the Secret of an operator can have the key of the authority beside it
      - key: {{ $postgres.tls.caKey | quote }}
        path: ca.crt
{{- end }}
{{- else }}
- name: data
  persistentVolumeClaim:
    claimName: {{ .root.Values.storage.existingClaim | default (printf "%s-data" (include "flux-resourceset.fullname" .root)) }}
{{- end }}
{{- end }}

{{/* Whom a pod may call: nobody on SQLite; name servers and the database on PostgreSQL. */}}
{{- define "flux-resourceset.egress" -}}
{{- $policy := .Values.networkPolicy -}}
{{- if include "flux-resourceset.onPostgres" . -}}
egress:
  - ports:
      - {port: 53, protocol: UDP}
      - {port: 53, protocol: TCP}
  - ports:
      {{- range $policy.postgresPorts }}
      - port: {{ . }}
      {{- end }}
    {{- with $policy.postgresTo }}
    to:
      {{- toYaml . | nindent 6 }}
    {{- end }}
{{- else -}}
egress: []
{{- end -}}
{{- end }}
