{{/* The variables that say which tokens there are. Called like the pod. */}}
{{- define "flux-resourceset.tokens" -}}
{{- $tokens := .root.Values.tokens -}}
{{- $file := .root.Values.tokensFile -}}
{{- if not (or $tokens.readSecret $file.existingSecret) -}}
{{- fail "tokens.readSecret and tokensFile.existingSecret are both empty: nobody could read; set one of them" -}}
{{- end -}}
{{- if and $tokens.readSecret $file.existingSecret (not $tokens.writeSecret) -}}
{{- fail "tokens.writeSecret is empty and tokens.readSecret is not: the token for reading could write, and the writer refuses to start; with a tokensFile, set both or leave both empty" -}}
{{- end -}}
{{- if $tokens.readSecret }}
- name: AUTH_TOKEN
  valueFrom:
    secretKeyRef:
      name: {{ $tokens.readSecret | quote }}
      key: token
{{- end }}
{{- if $file.existingSecret }}
- name: TOKENS_FILE
  value: /tokens/{{ $file.key }}
{{- end }}
{{- if and (eq .mode "crud") (or $tokens.writeSecret $file.existingSecret) }}
- name: PRODUCTION
  value: "true"
{{- end }}
{{- if and (eq .mode "crud") $tokens.writeSecret }}
- name: CRUD_AUTH_TOKEN
  valueFrom:
    secretKeyRef:
      name: {{ $tokens.writeSecret | quote }}
      key: token
{{- end }}
{{- end }}
