{{/* The pod of either mode. Called with a dict: root, mode ("read-only" or "crud"), name, values (of the mode). */}}
{{- define "flux-resourceset.pod" -}}
{{- include "flux-resourceset.checkDatabase" .root -}}
{{- $values := .root.Values -}}
{{- $onPostgres := include "flux-resourceset.onPostgres" .root -}}
metadata:
  labels:
    {{- merge (dict "app" .name "app.kubernetes.io/part-of" (include "flux-resourceset.partOf" .root)) $values.podLabels | toYaml | nindent 4 }}
  annotations:
    {{- merge (dict "checksum/kinds" ($values.kinds | toJson | sha256sum)) $values.podAnnotations | toYaml | nindent 4 }}
spec:
  {{- include "flux-resourceset.account" .root | nindent 2 }}
  {{- include "flux-resourceset.placement" .root | nindent 2 }}
  {{- if $onPostgres }}
  {{- include "flux-resourceset.spread" . | nindent 2 }}
  {{- end }}
  containers:
    - name: flux-api
      image: {{ include "flux-resourceset.image" .root | quote }}
      imagePullPolicy: {{ $values.image.pullPolicy }}
      ports:
        - name: http
          containerPort: 8080
      env:
        - name: API_MODE
          value: {{ .mode }}
        {{- include "flux-resourceset.databaseEnv" . | nindent 8 }}
        {{- if $onPostgres }}
        - name: SNAPSHOT_FILE # from which it starts when the database is away
          value: /snapshot/fleet
        - name: MAX_STALENESS
          value: {{ int64 $values.postgres.maxStaleness | quote }}
        {{- end }}
        - name: WORKERS
          value: {{ .values.workers | quote }}
        - name: SEED_FILE
          value: /seed/seed.json
        {{- if $values.kinds }}
        - name: RESOURCES_DIR
          value: /kinds
        {{- end }}
        - name: ENVIRONMENTS
          value: {{ join "," $values.environments | quote }}
        {{- if eq .mode "crud" }}
        {{- $protected := list }}
        {{- range $values.guards.protectedEnvironments }}
        {{- if has . $values.environments }}
        {{- $protected = append $protected . }}
        {{- end }}
        {{- end }}
        - name: PROTECTED_ENVIRONMENTS
          value: {{ join "," $protected | quote }}
        - name: GUARD_MAX_REMOVAL_CLUSTERS
          value: {{ $values.guards.maxRemovalClusters | quote }}
        - name: GUARD_MAX_CLUSTERS
          value: {{ $values.guards.maxClusters | quote }}
        {{- end }}
        {{- include "flux-resourceset.tokens" . | nindent 8 }}
        - name: RUST_LOG
          value: {{ $values.logLevel }}
        {{- range $name, $value := $values.env }}
        - name: {{ $name }}
          value: {{ $value | quote }}
        {{- end }}
        {{- with $values.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      resources:
        {{- toYaml .values.resources | nindent 8 }}
      startupProbe:
        httpGet:
          path: /health
          port: 8080
        periodSeconds: 1
        failureThreshold: 60
      livenessProbe:
        httpGet:
          path: /health
          port: 8080
        initialDelaySeconds: 2
        periodSeconds: 10
      readinessProbe:
        httpGet:
          path: /ready
          port: 8080
        initialDelaySeconds: 2
        periodSeconds: 5
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      volumeMounts:
        {{- include "flux-resourceset.databaseMounts" . | nindent 8 }}
        {{- if $onPostgres }}
        - name: snapshot
          mountPath: /snapshot
        {{- end }}
        - name: seed
          mountPath: /seed
          readOnly: true
        {{- if $values.kinds }}
        - name: kinds
          mountPath: /kinds
          readOnly: true
        {{- end }}
        {{- if $values.tokensFile.existingSecret }}
        - name: tokens
          mountPath: /tokens # no subPath: a file that is mounted with one never changes
          readOnly: true
        {{- end }}
        {{- with $values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    {{- include "flux-resourceset.databaseVolumes" . | nindent 4 }}
    {{- if $onPostgres }}
    - name: snapshot # survives the container, not the pod
      emptyDir:
        sizeLimit: {{ $values.postgres.snapshotSize | quote }}
    {{- end }}
    - name: seed
      configMap:
        name: {{ include "flux-resourceset.fullname" .root }}-seed-data
    {{- if $values.kinds }}
    - name: kinds
      configMap:
        name: {{ include "flux-resourceset.fullname" .root }}-kinds
    {{- end }}
    {{- with $values.tokensFile.existingSecret }}
    - name: tokens
      secret:
        secretName: {{ . | quote }}
        defaultMode: 0440 # others must not be able to read it, or the server refuses it
    {{- end }}
    {{- with $values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}

{{- define "flux-resourceset.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- define "flux-resourceset.service" -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ .name }}
  labels:
    app: {{ .name }}
    app.kubernetes.io/part-of: {{ include "flux-resourceset.partOf" .root }}
spec:
  selector:
    app: {{ .name }}
  ports:
    - name: http
      port: 8080
      targetPort: http
{{- end }}

{{/* One pod at a time may be evicted. Called with the name of a Deployment. */}}
{{- define "flux-resourceset.disruptionBudget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ . }}
spec:
  maxUnavailable: 1
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      app: {{ . }}
{{- end }}

{{- define "flux-resourceset.ingress" -}}
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: {{ .name }}
  {{- with .values.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  ingressClassName: {{ .values.className | quote }}
  tls:
    - hosts: [{{ .values.host | quote }}]
      secretName: {{ .values.tlsSecret | quote }}
  rules:
    - host: {{ .values.host | quote }}
      http:
        paths:
          - path: {{ .path }}
            pathType: Prefix
            backend:
              service:
                name: {{ .name }}
                port:
                  name: http
{{- end }}

{{/* As whom a pod runs: an account without any right, and nobody of the node's. */}}
{{- define "flux-resourceset.account" -}}
serviceAccountName: {{ include "flux-resourceset.fullname" . }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- end }}
