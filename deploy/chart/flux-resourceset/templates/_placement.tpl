{{/* Where the pods of a release run. On SQLite they share a file, and with it a node; the first of them may start anywhere. */}}
{{- define "flux-resourceset.placement" -}}
{{- $values := .Values -}}
{{- $affinity := deepCopy $values.affinity -}}
{{- if not (include "flux-resourceset.onPostgres" .) -}}
{{- $label := dict "app.kubernetes.io/part-of" (include "flux-resourceset.partOf" .) -}}
{{- $together := dict "topologyKey" "kubernetes.io/hostname" "labelSelector" (dict "matchLabels" $label) -}}
{{- $pods := $affinity.podAffinity | default dict -}}
{{- $required := prepend ($pods.requiredDuringSchedulingIgnoredDuringExecution | default list) $together -}}
{{- $_ := set $pods "requiredDuringSchedulingIgnoredDuringExecution" $required -}}
{{- $_ := set $affinity "podAffinity" $pods -}}
{{- end -}}
{{- with $affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- end }}

{{/* On PostgreSQL the pods of a Deployment are on different nodes and in different zones. Called with a dict: root, name. */}}
{{- define "flux-resourceset.spread" -}}
topologySpreadConstraints:
  {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: {{ $.root.Values.topologySpread }}
    matchLabelKeys: [pod-template-hash] # each rollout by itself
    labelSelector:
      matchLabels:
        app: {{ $.name }}
  {{- end }}
{{- end }}
