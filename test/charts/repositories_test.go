package charts_test

// fromRepositories are charts that no module of this repository has. They are compared where there are clones of their
// repositories; see the constant repositories.
func fromRepositories() map[string]chart {
	return map[string]chart{
		"external-dns": {
			why:        "definitions in crds/, values that null removes, a schema",
			repository: "kubernetes-sigs/external-dns", commit: "2bf1bf8af2b70f23579f9147c1f7e9394f7f83d5", folder: "charts/external-dns",
			sets:    map[string]string{"all": "{policy: sync, serviceMonitor: {enabled: true}, sources: [service, gateway-httproute, crd], provider: {name: webhook, webhook: {image: {repository: a, tag: b}, serviceMonitor: {}}}, extraArgs: {a: b}, rbac: {additionalPermissions: [{apiGroups: [a], resources: [b], verbs: [get]}]}}", "least": "{policy: sync}"},
			refused: []string{""},
		},
		"metrics-server": {
			why:        "an APIService, lookup of the certificate of a Secret, genCA",
			repository: "kubernetes-sigs/metrics-server", commit: "5ed5d3a2cf940a8c7541cfbac19af822f4c97844", folder: "charts/metrics-server",
			sets: map[string]string{"all": "{tls: {type: helm}, apiService: {insecureSkipTLSVerify: false}, metrics: {enabled: true}, serviceMonitor: {enabled: true}, podDisruptionBudget: {enabled: true, minAvailable: 1}, addonResizer: {enabled: true}, replicas: 2}"},
		},
		"ingress-nginx": {
			why:        "hooks before and after with weights and delete policies, a webhook, autoscaling",
			repository: "kubernetes/ingress-nginx", commit: "dbb11b92ddb77bee9c35e462479129354c84f939", folder: "charts/ingress-nginx",
			sets: map[string]string{"all": "{controller: {kind: Both, autoscaling: {enabled: true}, keda: {enabled: false}, metrics: {enabled: true, serviceMonitor: {enabled: true}, prometheusRule: {enabled: true, rules: [{alert: a}]}}, service: {internal: {enabled: true, annotations: {a: b}}}, networkPolicy: {enabled: true}, minAvailable: 2, replicaCount: 3}, defaultBackend: {enabled: true, autoscaling: {enabled: true}}, tcp: {'8080': 'default/a:80'}, udp: {'53': 'kube-system/dns:53'}, dhParam: YQ==}"},
		},
		"descheduler": {
			why:        "a CronJob or a Deployment, with a checksum of another template",
			repository: "kubernetes-sigs/descheduler", commit: "7d2b28bf2b6a12810317936d909af0270ff38fa3", folder: "charts/descheduler",
			sets: map[string]string{"all": "{kind: Deployment, replicas: 2, leaderElection: {enabled: true}, service: {enabled: true}, serviceMonitor: {enabled: true}, podDisruptionBudget: {enabled: true, minAvailable: 1}}"},
		},
		"sealed-secrets": {
			why:        "definitions in crds/, an Ingress with a certificate, dashboards from files",
			repository: "bitnami-labs/sealed-secrets", commit: "86671a8851be1e6c2dfef4e12e2d7c19ed24ac94", folder: "helm/sealed-secrets",
			sets: map[string]string{"all": "{ingress: {enabled: true, tls: true, selfSigned: true}, metrics: {serviceMonitor: {enabled: true}, dashboards: {create: true}}, pdb: {create: true}, networkPolicy: {enabled: true}}"},
		},
		"kyverno-policies": {
			why:        "many custom resources from one helper",
			repository: "kyverno/kyverno", commit: "111e07bbecc66abfde36ab99969af22d7a961003", folder: "charts/kyverno-policies",
			sets: map[string]string{"old types": "{policyType: ClusterPolicy, podSecurityStandard: restricted}"},
		},
		"kueue": {
			why:        "definitions in templates, a visibility API, patches of webhooks",
			repository: "kubernetes-sigs/kueue", commit: "ff69552e79ad21652c36caa97038382e55625cf7", folder: "charts/kueue",
			sets: map[string]string{"all": "{enablePrometheus: true, enableCertManager: true, enableVisibilityAPF: true, enableKueueViz: true, controllerManager: {replicas: 2, podDisruptionBudget: {enabled: true}}}"},
		},
		"gatekeeper": {
			why:        "hooks after installations and upgrades with RBAC of their own, hooks before deletions, crds/",
			repository: "open-policy-agent/gatekeeper", commit: "dd8507eb97f5ca24dbee34c95d8e6ffa053cb8a0", folder: "charts/gatekeeper",
			sets: map[string]string{"all": "{postUpgrade: {labelNamespace: {enabled: true}}, upgradeCRDs: {enabled: true}, preUninstall: {deleteWebhookConfigurations: {enabled: true}}, podSecurityPolicy: false, externalCertInjection: {enabled: true}}"},
		},
		"nats": {
			why:        "templates that merge and patch whole objects as data",
			repository: "nats-io/k8s", commit: "957650fba03e2e6ad8b5d54d66358f67a431157b", folder: "helm/charts/nats",
			sets: map[string]string{"all": "{config: {cluster: {enabled: true, replicas: 3}, jetstream: {enabled: true, fileStore: {pvc: {size: 1Gi}}}, leafnodes: {enabled: true}, websocket: {enabled: true, ingress: {enabled: true, hosts: [a.example]}}, mqtt: {enabled: true}, monitor: {enabled: true}}, promExporter: {enabled: true, podMonitor: {enabled: true}}, podDisruptionBudget: {enabled: true}, natsBox: {enabled: true}}"},
		},
		"node-feature-discovery": {
			why:        "a schema, crds/, a hook after deletions",
			repository: "kubernetes-sigs/node-feature-discovery", commit: "76e6cc8cc0d54b8bce037098b72611ffdf66ef5a", folder: "deployment/helm/node-feature-discovery",
			sets: map[string]string{"all": "{prometheus: {enable: true}, topologyUpdater: {enable: true}, gc: {enable: true}}"},
		},
		"secrets-store-csi-driver": {
			why:        "hooks with RBAC, Jobs and definitions before installations and upgrades; crds/",
			repository: "kubernetes-sigs/secrets-store-csi-driver", commit: "0aad886f70e94a6037325f4eaba4660338dde448", folder: "charts/secrets-store-csi-driver",
			sets: map[string]string{"all": "{syncSecret: {enabled: true}, enableSecretRotation: true, windows: {enabled: true}, tokenRequests: [{audience: a}]}"},
		},
		"jobset": {
			why:        "a ServiceMonitor only where its API is served, webhooks, cert-manager",
			repository: "kubernetes-sigs/jobset", commit: "08dfbdfd682714a9ab929633eca8dc95315187e7", folder: "charts/jobset", apis: []string{monitorings, "monitoring.coreos.com/v1/ServiceMonitor"},
			sets: map[string]string{"all": "{certManager: {enable: true}, prometheus: {enable: true}, controller: {replicas: 2, podDisruptionBudget: {enable: true}}}"},
		},
		"cluster": {
			why:        "a schema, custom resources that depend on a mode, a test",
			repository: "cloudnative-pg/charts", commit: "b21ad2dac7992215b8572007adb7448e3c8cc5db", folder: "charts/cluster",
			sets: map[string]string{
				"all":      "{backups: {enabled: true, provider: s3, s3: {region: a, bucket: b, accessKey: c, secretKey: d}}, poolers: [{name: rw, type: rw, instances: 1, poolMode: transaction, parameters: {}}], cluster: {instances: 3, monitoring: {enabled: true}}}",
				"recovery": "{mode: recovery, recovery: {method: backup, backupName: a}}",
			},
		},
	}
}
