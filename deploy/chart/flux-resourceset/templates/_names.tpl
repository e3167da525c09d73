{{/*
What the objects are called: flux-api for the release flux-resourceset, as in the manifests, and <release>-flux-api for any other,
so that two releases can share a namespace. nameOverride takes the place of flux-api, fullnameOverride that of the whole.
45 characters, so that a CronJob's name (at most 52) has room behind them.
*/}}
{{- define "flux-resourceset.fullname" -}}
{{- $name := .Values.nameOverride | default "flux-api" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 45 | trimSuffix "-" -}}
{{- else if eq .Release.Name .Chart.Name -}}
{{- $name | trunc 45 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 45 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 45 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{/* The label that all pods and Services of one release have, and those of no other. */}}
{{- define "flux-resourceset.partOf" -}}
{{- $name := include "flux-resourceset.fullname" . -}}
{{- eq $name "flux-api" | ternary "flux-resourceset" $name -}}
{{- end }}
