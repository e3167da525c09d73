{{/* Where the pods of a release run. They share a file, and with it a node; the first of them may start anywhere. */}}
{{- define "flux-resourceset.placement" -}}
{{- $values := .Values -}}
{{- $label := dict "app.kubernetes.io/part-of" (include "flux-resourceset.partOf" .) -}}
{{- $together := dict "topologyKey" "kubernetes.io/hostname" "labelSelector" (dict "matchLabels" $label) -}}
{{- $affinity := deepCopy $values.affinity -}}
{{- $pods := $affinity.podAffinity | default dict -}}
{{- $required := prepend ($pods.requiredDuringSchedulingIgnoredDuringExecution | default list) $together -}}
{{- $_ := set $pods "requiredDuringSchedulingIgnoredDuringExecution" $required -}}
{{- $_ := set $affinity "podAffinity" $pods -}}
affinity:
  {{- toYaml $affinity | nindent 2 }}
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
