{{/* The pod of either mode. Called with a dict: root, mode ("read-only" or "crud"), name, resources. */}}
{{- define "flux-resourceset.pod" -}}
{{- $values := .root.Values -}}
metadata:
  labels:
    app: {{ .name }}
    app.kubernetes.io/part-of: flux-resourceset
  annotations:
    checksum/kinds: {{ $values.kinds | toJson | sha256sum }}
spec:
  serviceAccountName: flux-api
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- with $values.image.pullSecrets }}
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
  affinity:
    podAffinity:
      # readers and writer share a file, and with it a node; the first of them may start anywhere
      requiredDuringSchedulingIgnoredDuringExecution:
        - topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              app.kubernetes.io/part-of: flux-resourceset
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
        - name: STORE_BACKEND
          value: sqlite
        - name: DATABASE_URL
          value: sqlite:///var/lib/flux-resourceset/flux-resourceset.db?mode={{ eq .mode "crud" | ternary "rwc" "ro" }}
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
        - name: AUTH_TOKEN
          valueFrom:
            secretKeyRef:
              name: {{ $values.tokens.readSecret | quote }}
              key: token
        {{- if and (eq .mode "crud") $values.tokens.writeSecret }}
        - name: PRODUCTION
          value: "true"
        - name: CRUD_AUTH_TOKEN
          valueFrom:
            secretKeyRef:
              name: {{ $values.tokens.writeSecret | quote }}
              key: token
        {{- end }}
        - name: RUST_LOG
          value: {{ $values.logLevel }}
        {{- range $name, $value := $values.env }}
        - name: {{ $name }}
          value: {{ $value | quote }}
        {{- end }}
      resources:
        {{- toYaml .resources | nindent 8 }}
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
        - name: data
          mountPath: /var/lib/flux-resourceset
          readOnly: {{ ne .mode "crud" }}
        - name: seed
          mountPath: /seed
          readOnly: true
        {{- if $values.kinds }}
        - name: kinds
          mountPath: /kinds
          readOnly: true
        {{- end }}
  volumes:
    - name: data
      persistentVolumeClaim:
        claimName: {{ $values.storage.existingClaim | default "flux-api-data" }}
    - name: seed
      configMap:
        name: flux-api-seed-data
    {{- if $values.kinds }}
    - name: kinds
      configMap:
        name: flux-api-kinds
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
  name: {{ . }}
  labels:
    app: {{ . }}
    app.kubernetes.io/part-of: flux-resourceset
spec:
  selector:
    app: {{ . }}
  ports:
    - name: http
      port: 8080
      targetPort: http
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
