//go:build !race

package fidelity

// kind is a resource that sequences use, with values good and bad to write into it.
type kind struct {
	resource, group, version, kind string
	cluster                        bool // not in a namespace
	// base is JSON of what a valid object has besides its metadata.
	base string
	// fields are what requests change.
	fields []field
	// subs are the subresources: status, scale.
	subs []string
	// versions are further ones that are served.
	versions []string
}

// field is a place in an object, as path of names joined by dots, with JSON values for it.
// Those that begin with ! are refused, or make the object one that refuses much, and are
// chosen seldom.
type field struct {
	path   string
	values []string
}

// custom reports whether a CRD defines the kind.
func (k kind) custom() bool { return k.group == customGroup }

func (k kind) apiVersion() string {
	if k.group == "" {
		return k.version
	}
	return k.group + "/" + k.version
}

// prefix is the part of a request's path that all objects of a version share.
func (k kind) prefix(version string) string {
	if k.group == "" {
		return "/api/" + version
	}
	return "/apis/" + k.group + "/" + version
}

const customGroup = "fidelity.test"

const podSpec = `{"containers":[{"name":"a","image":"i"}]}`

var containers = []string{
	`[{"name":"a","image":"i"}]`, `[{"name":"a","image":"j","env":[{"name":"X","value":"1"}]}]`,
	`[{"name":"b","image":"i","ports":[{"containerPort":80}]},{"name":"a","image":"k:v1"}]`,
	`[{"name":"a","image":"i","resources":{"limits":{"cpu":"0.5","memory":"1024Mi"}}}]`,
	`[{"name":"a","image":"i","env":[{"name":"X","value":"1"},{"name":"X","value":"2"}]}]`, `![{"name":"A","image":""}]`, `![]`,
}

// kinds returns those that are played: custom ones, and built-in ones on which no controller of a
// cluster acts as they are used here.
func kinds() []kind {
	return append(customKinds(), append(coreKinds(), groupKinds()...)...)
}

func customKinds() []kind {
	return []kind{
		{
			resource: "widgets", group: customGroup, version: "v1", kind: "Widget", base: `{"spec":{"size":1}}`,
			subs: []string{"status", "scale"},
			fields: []field{
				{"spec.size", []string{"0", "5", "7", "100", "!101", "!-1", `!"9"`, "1.0", "!1.5", "null"}},
				{"spec.limit", []string{"4", "10", "3000000000"}},
				{"spec.mode", []string{`"slow"`, `"fast"`, `""`, `!"odd"`, "null"}},
				{"spec.replicas", []string{"0", "2", "3"}},
				{"spec.ratio", []string{"0.5", "1.5", "2", "!0.3", "1e2"}},
				{"spec.region", []string{`"eu"`, `"us"`, `!"EU"`, `"muchtoolong"`}},
				{"spec.port", []string{"80", `"http"`, "!true", "1.5"}},
				{"spec.owner", []string{"null", `"me"`}},
				{"spec.start", []string{`"2020-01-01T00:00:00Z"`, `"2020-01-01T00:00:00.123456+02:00"`, `"yesterday"`}},
				{"spec.wait", []string{`"5s"`, `"5 seconds"`}},
				{"spec.secret", []string{`"aGFsbG8="`, `"%"`}},
				{"spec.tags", []string{`["a"]`, `["b","a"]`, `["c","d"]`, `!["a","a"]`, `["a","b","c","d","e"]`}},
				{"spec.parts", []string{
					`[{"name":"p"}]`, `[{"name":"q","weight":5},{"name":"p","zone":"there"}]`,
					`[{"name":"p","nested":{"a":"y","b":"z"}}]`, `![{"name":"p"},{"name":"p"}]`, `![{"zone":"x"}]`, `![{"name":"p","weight":60}]`, `![null]`,
				}},
				{"spec.plain", []string{"[1,2]", "[2]", "[]", `!["x"]`, "[null]"}},
				{"spec.atomic", []string{`[{"k":"a","v":"b"}]`, `[{"k":"c","x":"y"}]`, "[]"}},
				{"spec.labels", []string{`{"a":"1"}`, `{"a":"2","b":"3"}`, `!{"a":"long"}`, `{"a":null}`, "{}"}},
				{"spec.labels.c", []string{`"x"`, "null"}},
				{"spec.pinned", []string{`{"a":"1"}`, `{"b":"2"}`, "{}"}},
				{"spec.free", []string{`{"any":{"thing":[1,"two",null]}}`, `{"known":5}`, `!{"known":"x"}`, `{"a":null}`}},
				{"spec.template", []string{
					`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"t"},"x":1}`, `!{"kind":"Secret"}`,
					`!{"apiVersion":"v1","kind":"Secret","metadata":{"name":"BAD","junk":1}}`,
				}},
				{"spec.junk", []string{`"x"`, `{"deep":1}`}},
				{"junk", []string{`1`}},
				{"status", []string{`{"phase":"Old"}`, `{}`, `null`, `"x"`}},
				{"status.phase", []string{`"Old"`, `"New"`, `"Bad"`}},
				{"status.id", []string{`"1"`, `"2"`}},
				{"status.replicas", []string{"1", "2", `"3"`}},
				{"status.selector", []string{`"a=b"`}},
				{"status.conditions", []string{
					`[{"type":"Ready","status":"True"}]`, `[{"type":"Ready","status":"False","reason":"R"},{"type":"Synced","status":"True"}]`,
					`![{"type":"Synced","status":"Maybe"}]`, `![{"type":"Ready","status":"True"},{"type":"Ready","status":"True"}]`, `![{"type":"Ready"}]`,
				}},
			},
		},
		{
			resource: "zones", group: customGroup, version: "v1", kind: "Zone", base: `{"spec":{"color":"green"}}`, cluster: true,
			versions: []string{"v2"},
			fields: []field{
				{"spec.color", []string{`"red"`, `"green"`, "null", "5"}},
				{"spec.reason", []string{`"why"`, "null"}},
				{"spec.count", []string{"1", "8", `"x"`}},
				{"spec.extra", []string{`{"a":["b"]}`, `!{"a":"b"}`, `{"c":[]}`}},
				{"status.any", []string{"1", `{"x":[{}]}`}},
				{"status", []string{"null", "{}"}},
			},
		},
	}
}

func coreKinds() []kind {
	return []kind{
		{
			resource: "secrets", version: "v1", kind: "Secret", base: `{}`,
			fields: []field{
				{"stringData", []string{`{"k":"1"}`, `{"l":"2"}`, `{"k":"3","m":""}`, `{"bad key":"x"}`}},
				{"data", []string{`{"k":"MQ=="}`, `{"n":"Mg=="}`, `!{"k":"%"}`, `{"k":null}`, "null"}},
				{"type", []string{`"my/type"`, `"Opaque"`, `!"kubernetes.io/basic-auth"`, `"kubernetes.io/tls"`}},
				{"immutable", []string{"true", "false", "null", `"x"`}},
				{"junk", []string{"1"}},
			},
		},
		{
			resource: "configmaps", version: "v1", kind: "ConfigMap", base: `{"data":{"a":"b"}}`,
			fields: []field{
				{"data", []string{`{"k":"1"}`, `{"l":"2","k":"3"}`, `!{"k":5}`, `!{"../x":"y"}`, "null"}},
				{"data.k", []string{`"4"`, "null", `""`}},
				{"binaryData", []string{`{"b":"MQ=="}`, `{"k":"MQ=="}`}},
				{"immutable", []string{"true", "false", "null"}},
			},
		},
		{
			resource: "serviceaccounts", version: "v1", kind: "ServiceAccount", base: `{}`,
			fields: []field{
				{"secrets", []string{`[{"name":"s"}]`, `[{"name":"t"},{"name":"s"}]`}},
				{"imagePullSecrets", []string{`[{"name":"p"}]`, `[]`}},
				{"automountServiceAccountToken", []string{"true", "false", "null"}},
			},
		},
		{
			resource: "services", version: "v1", kind: "Service", base: `{"spec":{"ports":[{"port":80}]}}`, subs: []string{"status"},
			fields: []field{
				{"spec.ports", []string{
					`[{"port":80,"targetPort":"http"}]`, `[{"port":80,"name":"a"},{"port":80,"name":"b","protocol":"UDP"}]`,
					`![{"port":81},{"port":82}]`, `![{"port":81,"nodePort":5}]`, `![{"port":70000}]`, `![]`, `[{"port":443,"name":"s","appProtocol":"https"}]`,
				}},
				{"spec.type", []string{`"ClusterIP"`, `"ExternalName"`, `"NodePort"`, `"LoadBalancer"`, `"Odd"`}},
				{"spec.externalName", []string{`"x.example.com"`, `!"-"`, "null"}},
				{"spec.clusterIP", []string{`"None"`, `!"1.2.3.4"`, `!"10.96.0.0"`, `!"10.96.255.255"`, `!"x"`, "null"}},
				{"spec.sessionAffinity", []string{`"ClientIP"`, `"None"`, `"x"`}},
				{"spec.publishNotReadyAddresses", []string{"true"}},
				{"status.conditions", []string{`[{"type":"X","status":"True","reason":"R","message":"","lastTransitionTime":"2020-01-01T00:00:00Z"}]`, "null"}},
			},
		},
		{
			resource: "limitranges", version: "v1", kind: "LimitRange", base: `{"spec":{"limits":[{"type":"Container","max":{"cpu":"2"}}]}}`,
			fields: []field{
				{"spec.limits", []string{
					`[{"type":"Container","max":{"cpu":"1000m"},"min":{"cpu":"0.1"}}]`, `[{"type":"Pod","max":{"memory":"1Gi"}}]`,
					`![{"type":"Container","max":{"cpu":"1"},"min":{"cpu":"2"}}]`, `![{"type":"Pod","default":{"cpu":"1"}}]`, `![{"max":{"cpu":"x"}}]`, `[]`,
				}},
			},
		},
		{
			resource: "podtemplates", version: "v1", kind: "PodTemplate", base: `{"template":{"spec":` + podSpec + `}}`,
			fields: []field{
				{"template.spec.containers", containers},
				{"template.metadata", []string{`{"labels":{"a":"b"}}`, `{"creationTimestamp":null}`}},
				{"template.spec.restartPolicy", []string{`"Never"`, `"Always"`, `"x"`}},
				{"template.spec.tolerations", []string{`[{"key":"a","operator":"Exists"}]`, `[{"key":"a","operator":"Exists","value":"v"}]`}},
				{"template.spec.volumes", []string{`[{"name":"v","emptyDir":{}}]`, `[{"name":"v","configMap":{"name":"c"}}]`, `[{"name":"v"}]`, `[{"name":"v"},{"name":"v"}]`}},
				{"template.spec.serviceAccountName", []string{`"sa"`, `"BAD_"`}},
				{"template.spec.junk", []string{`"x"`}},
			},
		},
	}
}

func groupKinds() []kind {
	const rbac, ref = "rbac.authorization.k8s.io", `{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"r"}`
	return []kind{
		{
			resource: "roles", group: rbac, version: "v1", kind: "Role", base: `{}`,
			fields: []field{
				{"rules", []string{
					`[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]`, `[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]`,
					`![{"apiGroups":[""],"resources":["pods"]}]`, `![{"nonResourceURLs":["/x"],"verbs":["get"]}]`, "null", "[]",
				}},
			},
		},
		{
			resource: "rolebindings", group: rbac, version: "v1", kind: "RoleBinding", base: `{"roleRef":` + ref + `}`,
			fields: []field{
				{"roleRef.name", []string{`"s"`, `"r"`, `""`}},
				{"roleRef.kind", []string{`"ClusterRole"`, `"Role"`, `"X"`}},
				{"subjects", []string{
					`![{"kind":"ServiceAccount","name":"a"}]`, `[{"kind":"ServiceAccount","name":"a","namespace":"b"}]`,
					`[{"kind":"User","name":"u"},{"kind":"Group","name":"g","apiGroup":"rbac.authorization.k8s.io"}]`, `![{"kind":"X","name":"u"}]`, "null",
				}},
			},
		},
		{
			resource: "leases", group: "coordination.k8s.io", version: "v1", kind: "Lease", base: `{"spec":{}}`,
			fields: []field{
				{"spec.holderIdentity", []string{`"a"`, `"b"`, `!""`, "null"}},
				{"spec.leaseDurationSeconds", []string{"15", "!0", "-3"}},
				{"spec.acquireTime", []string{`"2020-01-01T00:00:00.000000Z"`, `!"2020-01-01T00:00:00Z"`, `"now"`}},
				{"spec.renewTime", []string{`"2020-01-01T00:00:01.123456Z"`, "null"}},
				{"spec.leaseTransitions", []string{"1", "2", "-1"}},
			},
		},
		{
			resource: "networkpolicies", group: "networking.k8s.io", version: "v1", kind: "NetworkPolicy", base: `{"spec":{"podSelector":{}}}`,
			fields: []field{
				{"spec.podSelector", []string{`{"matchLabels":{"a":"b"}}`, `!{"matchExpressions":[{"key":"a","operator":"In"}]}`, "{}"}},
				{"spec.ingress", []string{`[{}]`, `[{"ports":[{"port":80}]}]`, `[{"from":[{"ipBlock":{"cidr":"10.0.0.0/8"}}]}]`, `![{"from":[{"ipBlock":{"cidr":"x"}}]}]`, "[]"}},
				{"spec.egress", []string{`[{"to":[{"podSelector":{}}]}]`, "[]", "null"}},
				{"spec.policyTypes", []string{`["Ingress"]`, `["Egress","Ingress"]`, `!["X"]`, "null"}},
			},
		},
		{
			resource: "ingresses", group: "networking.k8s.io", version: "v1", kind: "Ingress", subs: []string{"status"},
			base: `{"spec":{"defaultBackend":{"service":{"name":"s","port":{"number":80}}}}}`,
			fields: []field{
				{"spec.rules", []string{
					`[{"host":"a.example","http":{"paths":[{"path":"/","pathType":"Prefix","backend":{"service":{"name":"s","port":{"name":"p"}}}}]}}]`,
					`![{"http":{"paths":[{"path":"x","pathType":"Exact","backend":{}}]}}]`, `![{"host":"*"}]`, "null",
				}},
				{"spec.tls", []string{`[{"hosts":["a.example"],"secretName":"t"}]`, "[]"}},
				{"spec.ingressClassName", []string{`"c"`, `!"C_"`, "null"}},
				{"status.loadBalancer", []string{`{"ingress":[{"ip":"1.2.3.4"}]}`, `!{"ingress":[{"ip":"x"}]}`, "{}"}},
			},
		},
		{
			resource: "endpointslices", group: "discovery.k8s.io", version: "v1", kind: "EndpointSlice", base: `{"addressType":"IPv4","endpoints":[]}`,
			fields: []field{
				{"addressType", []string{`"IPv6"`, `!"FQDN"`, `"IPv4"`, `"x"`}},
				{"endpoints", []string{`[{"addresses":["10.1.2.3"]}]`, `[{"addresses":["10.1.2.3"],"conditions":{"ready":false},"nodeName":"n"}]`, `![{"addresses":[]}]`, `[{"addresses":["x"]}]`}},
				{"ports", []string{`[{"port":80}]`, `[{"name":"a","port":80,"protocol":"UDP"},{"name":"b"}]`, `![{"port":80},{"port":81}]`, "null"}},
			},
		},
		{
			resource: "cronjobs", group: "batch", version: "v1", kind: "CronJob",
			base: `{"spec":{"suspend":true,"schedule":"0 0 1 1 *","jobTemplate":{"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"a","image":"i"}]}}}}}}`,
			fields: []field{
				{"spec.schedule", []string{`"1 1 1 1 *"`, `!"bad"`, `"@yearly"`, `"TZ=UTC 0 0 1 1 *"`}},
				{"spec.concurrencyPolicy", []string{`"Forbid"`, `"x"`}},
				{"spec.timeZone", []string{`"Europe/Vienna"`, `!"Mars/Base"`, "null"}},
				{"spec.successfulJobsHistoryLimit", []string{"0", "5", "-1"}},
				{"spec.jobTemplate.spec.backoffLimit", []string{"1", "!-1", "null"}},
				{"spec.jobTemplate.spec.template.spec.restartPolicy", []string{`"OnFailure"`, `"Always"`}},
				{"spec.jobTemplate.spec.template.spec.containers", containers},
			},
		},
		{
			resource: "controllerrevisions", group: "apps", version: "v1", kind: "ControllerRevision", base: `{"revision":1,"data":{"a":1}}`,
			fields: []field{
				{"revision", []string{"2", "3", "-1"}},
				{"data", []string{`{"a":2}`, `{"a":1}`, "null", `"x"`}},
			},
		},
		{
			resource: "horizontalpodautoscalers", group: "autoscaling", version: "v2", kind: "HorizontalPodAutoscaler", subs: []string{"status"},
			base:     `{"spec":{"maxReplicas":3,"scaleTargetRef":{"kind":"Deployment","name":"d","apiVersion":"apps/v1"}}}`,
			versions: []string{"v1"},
			fields: []field{
				{"spec.minReplicas", []string{"1", "2", "!0", "null"}},
				{"spec.maxReplicas", []string{"1", "5", "0"}},
				{"spec.metrics", []string{
					`[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":50}}}]`,
					`[{"type":"Resource","resource":{"name":"memory","target":{"type":"AverageValue","averageValue":"100Mi"}}}]`, `![{"type":"X"}]`, "null",
				}},
				{"spec.behavior", []string{`{"scaleDown":{"stabilizationWindowSeconds":10}}`, `!{"scaleUp":{"policies":[]}}`, "null"}},
				{"spec.targetCPUUtilizationPercentage", []string{"50", "null"}},
				{"status.currentReplicas", []string{"1", "2"}},
				{"status.desiredReplicas", []string{"3"}},
			},
		},
	}
}
