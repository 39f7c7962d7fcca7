package charts_test

// A chart is one that is rendered by both. It is in a module or in a repository.
type chart struct {
	// why says which features of charts it covers.
	why string
	// module has the chart, and is required by the go.mod in the folder of this repository. So its version and checksum
	// are pinned there.
	module, requiredBy string
	// repository and commit have the chart if no module of this repository has it.
	repository, commit string
	// folder is that of the chart.
	folder string
	// sets are values, as YAML, by their name. The chart's own values are always compared, too, and so is each of its
	// switches alone.
	sets map[string]string
	// apis are served besides those that Helm assumes.
	apis []string
	// noDefinitions: those in crds/ serve no version, so the chart is installed without them.
	noDefinitions bool
	// refused are the sets that both must refuse. The empty name is that of the chart's own values.
	refused []string
}

const (
	helmModule  = "helm.sh/helm/v4"
	kwokModule  = "sigs.k8s.io/kwok"
	monitorings = "monitoring.coreos.com/v1"
)

// fromModules are charts in modules that something here is compiled with.
func fromModules() map[string]chart {
	return map[string]chart{
		"cert-manager": {
			why:    "hooks after the installation with weights, definitions in templates that are kept, a schema, toYaml and tpl",
			module: "github.com/cert-manager/cert-manager", requiredBy: "test/wild/cainjector", folder: "deploy/charts/cert-manager",
			apis: []string{monitorings, "monitoring.coreos.com/v1/ServiceMonitor"},
			sets: map[string]string{
				"all": `{crds: {enabled: true, keep: true}, global: {logLevel: 4, podSecurityPolicy: {enabled: false}, rbac: {create: true}},
replicaCount: 2, podDisruptionBudget: {enabled: true, minAvailable: 1}, prometheus: {servicemonitor: {enabled: true}},
webhook: {replicaCount: 3, podDisruptionBudget: {enabled: true}, networkPolicy: {enabled: true}},
cainjector: {replicaCount: 2, podDisruptionBudget: {enabled: true}},
config: {apiVersion: controller.config.cert-manager.io/v1alpha1, kind: ControllerConfiguration, logging: {verbosity: 2}}}`,
				"extra objects through tpl": `{extraObjects: ["apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: '{{ .Release.Name }}-extra'\n"]}`,
				"refused by the schema":     `{replicaCountt: 1}`,
			},
			refused: []string{"refused by the schema"},
		},
		"cert-manager's sample webhook": {
			why:    "a chart of few objects that names certificates after the release",
			module: "github.com/cert-manager/cert-manager", requiredBy: "test/wild/cainjector", folder: "make/config/samplewebhook/chart",
		},
		"pebble": {
			why:    "files of the chart in a ConfigMap",
			module: "github.com/cert-manager/cert-manager", requiredBy: "test/wild/cainjector", folder: "make/config/pebble/chart",
		},
		"trust-manager": {
			why:    "genCA and genSignedCert, whose results are in several objects; a definition that is kept; required values",
			module: "github.com/cert-manager/trust-manager", requiredBy: "test/wild/trustmanager", folder: "deploy/charts/trust-manager",
			apis: []string{monitorings},
			sets: map[string]string{
				"all": `{app: {webhook: {tls: {helmCert: {enabled: true}}}, metrics: {service: {servicemonitor: {enabled: true}}}},
secretTargets: {enabled: true, authorizedSecrets: [one, two]}, podDisruptionBudget: {enabled: true}, replicaCount: 2,
filterExpiredCertificates: {enabled: true}, filterNonCACerts: {enabled: true}}`,
				"secrets that nobody may read": `{secretTargets: {enabled: true}}`,
			},
		},
		"aws-pca-issuer": {
			why:    "definitions in crds/, autoscaling, a budget, a ServiceMonitor",
			module: "github.com/cert-manager/aws-privateca-issuer", requiredBy: "test/wild/awspca", folder: "charts/aws-pca-issuer",
			sets: map[string]string{
				"all": `{autoscaling: {enabled: true, minReplicas: 2, maxReplicas: 5, targetCPUUtilizationPercentage: 70},
podDisruptionBudget: {maxUnavailable: 1}, serviceMonitor: {create: true}, approverRole: {enabled: true}}`,
			},
		},
		"eck-operator": {
			why:    "a sub-chart with a condition, profiles of values, webhooks with certificates that are generated, lookup",
			module: "github.com/elastic/cloud-on-k8s/v3", requiredBy: "test/wild/eck", folder: "deploy/eck-operator",
			sets: map[string]string{
				"all": `{installCRDs: true, replicaCount: 2, podDisruptionBudget: {enabled: true}, webhook: {enabled: true, manageCerts: false},
config: {metrics: {port: 9000, secureMode: {enabled: true}}}, serviceMonitor: {enabled: true}, softMultiTenancy: {enabled: true}, kubeAPIServerIP: 10.0.0.1,
managedNamespaces: [a, b], createClusterScopedResources: true}`,
				"without definitions": `{installCRDs: false, createClusterScopedResources: false, managedNamespaces: [a], webhook: {enabled: false}, config: {validateStorageClass: false}}`,
				"what fail refuses":   `{createClusterScopedResources: false}`,
			},
			refused: []string{"what fail refuses"},
		},
		"eck-stack": {
			why:    "an umbrella chart of ten sub-charts, each with a condition, which validate their values with fail",
			module: "github.com/elastic/cloud-on-k8s/v3", requiredBy: "test/wild/eck", folder: "deploy/eck-stack",
			sets: map[string]string{
				"logstash and ingress": `{eck-logstash: {enabled: true}, eck-elasticsearch: {ingress: {enabled: true, hosts: [{host: a.example, path: /}]}}}`,
				"nothing":              `{eck-elasticsearch: {enabled: false}, eck-kibana: {enabled: false}}`,
				"all":                  `{eck-logstash: {enabled: true}, eck-apm-server: {enabled: true, elasticsearchRef: {name: a}, deployment: {}}, eck-beats: {enabled: true, type: filebeat, daemonSet: {podTemplate: {}}}, eck-enterprise-search: {enabled: true, elasticsearchRef: {name: a}}, eck-agent: {enabled: true, daemonSet: {podTemplate: {}}}, eck-fleet-server: {enabled: true, deployment: {podTemplate: {}}}}`,
				"what fail refuses":    `{eck-beats: {enabled: true}}`,
			},
			refused: []string{"what fail refuses"},
		},
		"karpenter": {
			why:    "a PodDisruptionBudget that is always there, a ServiceMonitor, names cut at 63 characters",
			module: "sigs.k8s.io/karpenter", requiredBy: "test/wild/karpenter", folder: "kwok/charts",
			sets: map[string]string{"all": `{serviceMonitor: {enabled: true}, additionalLabels: {a: b}, hostNetwork: true, settings: {featureGates: {nodeRepair: true}}}`},
		},
		"kwok": {
			why:    "hyphenated helpers, with and range over values",
			module: kwokModule, requiredBy: "devcluster", folder: "charts/kwok",
			sets: map[string]string{"more": `{replicas: 3, hostNetwork: true, resources: {limits: {cpu: 100m}}, imagePullSecrets: [{name: a}]}`, "null": `{tolerations: null, image: {pullPolicy: null}, env: null}`},
		},
		"stage-fast":    {why: "custom resources whose texts have templates of another language", module: kwokModule, requiredBy: "devcluster", folder: "charts/stage-fast"},
		"metrics-usage": {why: "custom resources, with expressions as texts", module: kwokModule, requiredBy: "devcluster", folder: "charts/metrics-usage"},

		"sub-charts": {
			why: "conditions, tags, import-values and exports, a hook that is a test", module: helmModule, requiredBy: ".", folder: "pkg/cmd/testdata/testcharts/subchart", noDefinitions: true,
			sets: map[string]string{
				"by tag":       `{tags: {front-end: false}}`,
				"by condition": `{tags: {front-end: true}, subcharta: {enabled: false}}`,
				"imported":     `{subchartb: {enabled: true, SCBdata: {SCBint: 7}}}`,
			},
		},
		"aliases": {
			why: "a sub-chart twice, once by its alias; sub-charts of sub-charts; tags", module: helmModule, requiredBy: ".", folder: "pkg/chart/v2/util/testdata/subpop",
			sets: map[string]string{
				"alias":    `{subchart2alias: {enabled: true}, tags: {front-end: true}}`,
				"back end": `{tags: {front-end: false, back-end: true}}`,
				"all":      `{subchart1: {enabled: true}, subchart2: {enabled: true}, subchart2alias: {enabled: true}}`,
			},
		},
		"imports from aliases": {why: "import-values from aliases", module: helmModule, requiredBy: ".", folder: "pkg/chart/v2/util/testdata/chart-with-import-from-aliased-dependencies"},
		"library": {
			why: "a library chart of helpers, unpacked", module: helmModule, requiredBy: ".", folder: "pkg/cmd/testdata/testcharts/chart-with-template-lib-dep",
			sets: map[string]string{"ingress": `{ingress: {enabled: true, hosts: [a.example], annotations: {a: b}}}`},
		},
		"packed library":   {why: "a library chart of helpers, packed", module: helmModule, requiredBy: ".", folder: "pkg/cmd/testdata/testcharts/chart-with-lib-dep"},
		"order":            {why: "the order of kinds, of files and in files", module: helmModule, requiredBy: ".", folder: "pkg/cmd/testdata/testcharts/object-order"},
		"only definitions": {why: "crds/ and nothing else", module: helmModule, requiredBy: ".", folder: "pkg/cmd/testdata/testcharts/chart-with-only-crds"},
		"schema": {
			why: "schemas of a chart and of its sub-chart", module: helmModule, requiredBy: ".", folder: "pkg/cmd/testdata/testcharts/chart-with-schema-and-subchart",
			sets:    map[string]string{"valid": `{lastname: doe, subchart-with-schema: {age: 25}}`, "invalid": `{lastname: doe, subchart-with-schema: {age: -25}}`},
			refused: []string{"", "invalid"},
		},
		"bundle of databases": {why: "sub-charts, unpacked, of a chart of the old version v1", module: helmModule, requiredBy: ".", folder: "pkg/action/testdata/charts/chart-with-uncompressed-dependencies"},
	}
}
