package component_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const everydayService = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports:
  - {name: http, port: 80}
`

const everydayDNS = `
apiVersion: v1
kind: Service
metadata: {name: dns}
spec:
  selector: {app: dns}
  ports:
  - {name: udp, port: 53, protocol: UDP}
`

const everydayClaim = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec:
  storageClassName: $NS
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
`

const everydayVolume = `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: $NS}
provisioner: example.org/by-hand
allowVolumeExpansion: true
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: $NS}
spec:
  storageClassName: $NS
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  claimRef: {namespace: $NS, name: data}
  hostPath: {path: /none}
`

const everydaySecret = `
apiVersion: v1
kind: Secret
metadata: {name: s}
stringData: {username: a, password: one}
`

const everydayConf = `
apiVersion: v1
kind: ConfigMap
metadata: {name: conf}
data: {level: debug}
`

const everydayBinding = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: web}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: ServiceAccount, name: default, namespace: $NS}]
`

const everydayBudget = `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec:
  minAvailable: 1
  selector: {matchLabels: {app: web}}
`

// bound binds the claim to its volume as the volume controller does, if there is none.
func (b *bench) bound() {
	b.t.Helper()
	claim := b.exists(b.placed(b.manifests(everydayClaim)[0]))
	for path, body := range map[string]string{
		"":       fmt.Sprintf(`{"spec":{"volumeName":%q}}`, b.namespace),
		"status": `{"status":{"phase":"Bound","accessModes":["ReadWriteOnce"],"capacity":{"storage":"1Gi"}}}`,
	} {
		patch, as := client.RawPatch(types.MergePatchType, []byte(body)), b.as("kube-controller-manager")
		err := error(nil)
		if path == "" {
			err = as.Patch(b.t.Context(), claim.DeepCopy(), patch)
		} else {
			err = as.SubResource(path).Patch(b.t.Context(), claim.DeepCopy(), patch)
		}
		if err != nil {
			b.t.Fatal(err)
		}
	}
}

// headless fails the test unless the Service has no address, or has one.
func (b *bench) headless(want bool) {
	b.t.Helper()
	ip, _, _ := unstructured.NestedString(b.now(b.manifests(everydayService)[0]).Object, "spec", "clusterIP")
	if (ip == "None") != want {
		b.t.Errorf("the Service has address %q", ip)
	}
}

// crowded has others own 100 fields of a ConfigMap, and fails the test unless they do.
func crowded(b *bench) {
	theirs := map[string]string{}
	labels := map[string]string{}
	for i := range 80 {
		theirs[fmt.Sprintf("theirs-%d", i)] = "x"
	}
	for i := range 20 {
		labels[fmt.Sprintf("example.org/theirs-%d", i)] = "x"
	}
	body, err := json.Marshal(map[string]any{"data": theirs, "metadata": map[string]any{"labels": labels}})
	if err != nil {
		b.t.Fatal(err)
	}
	b.merge("them", b.named("conf"), string(body))
}

func stillCrowded(b *bench) {
	live := b.live("conf")
	if len(live.Data) != 81 || live.Data["level"] != "info" || len(live.Labels) < 20 {
		b.t.Errorf("fields of others are gone: %d values, %d labels", len(live.Data), len(live.Labels))
	}
}

func everydayObjects() map[string]everyday { //nolint:funlen // a table
	headless := edited(everydayService, "spec:", "spec:\n  clusterIP: None")
	tls := edited(everydaySecret, "stringData", "type: kubernetes.io/basic-auth\nstringData")
	edit := edited(everydayBinding, "name: view", "name: edit")
	fixed := edited(everydayConf, "\ndata:", "\nimmutable: true\ndata:")
	return map[string]everyday{
		"Service becomes headless": {
			why: "a chart decides that clients talk to Pods",
			steps: []everyStep{
				{manifest: everydayService},
				{manifest: headless, says: []string{"Service $NS/web", "clusterIP", "$OP/immutable-policy: recreate"}},
				{manifest: annotatedWith(headless, "immutable-policy", "recreate")},
			},
			replaced: []string{"Service/web"},
		},
		"Service is no longer headless": {
			why: "and decides otherwise",
			steps: []everyStep{
				{manifest: headless},
				{manifest: everydayService, then: func(b *bench) { b.headless(true) }}, // the API server keeps it
				{manifest: annotatedWith(headless, "update-policy", "recreate")},
				{manifest: annotatedWith(everydayService, "update-policy", "recreate"), then: func(b *bench) { b.headless(false) }},
			},
			replaced: []string{"Service/web"},
		},
		"NodePort becomes ClusterIP": {
			why: "the API server has allocated a port, which is forbidden then",
			steps: []everyStep{
				{manifest: edited(everydayService, "spec:", "spec:\n  type: NodePort")},
				{manifest: everydayService},
				{manifest: edited(everydayService, "spec:", "spec:\n  type: ExternalName\n  externalName: example.org")},
				{manifest: everydayService},
			},
		},
		"one port for TCP and UDP": {
			why: "a port number is no key",
			steps: []everyStep{
				{manifest: everydayDNS},
				{manifest: everydayDNS + "  - {name: tcp, port: 53, protocol: TCP}\n", then: func(b *bench) {
					ports, _, _ := unstructured.NestedSlice(b.now(b.manifests(everydayDNS)[0]).Object, "spec", "ports")
					if len(ports) != 2 {
						b.t.Errorf("ports %v, want two", ports)
					}
				}},
				{manifest: everydayDNS},
			},
		},
		"claim grows": {
			why:    "data gets more, and somebody tries to shrink it",
			theirs: everydayVolume,
			steps: []everyStep{
				{manifest: everydayClaim, during: (*bench).bound},
				{manifest: edited(everydayClaim, "storage: 1Gi", "storage: 5Gi")},
				{manifest: edited(everydayClaim, "storage: 1Gi", "storage: 500Mi"), says: []string{"PersistentVolumeClaim $NS/data", "less than"}},
				{manifest: edited(everydayClaim, "storage: 1Gi", "storage: 5Gi")},
			},
		},
		"Secret of another type": {
			why: "a chart sets the type that was left out",
			steps: []everyStep{
				{manifest: everydaySecret},
				{manifest: tls, says: []string{"Secret $NS/s", "type", "immutable", "$OP/immutable-policy: recreate"}},
				{manifest: annotatedWith(tls, "immutable-policy", "recreate")},
			},
			replaced: []string{"Secret/s"},
		},
		"stringData": {
			why: "the API server moves it to data",
			steps: []everyStep{
				{manifest: everydaySecret},
				{manifest: edited(everydaySecret, "username: a, password: one", "password: two"), then: func(b *bench) {
					data, _, _ := unstructured.NestedMap(b.now(b.manifests(everydaySecret)[0]).Object, "data")
					if len(data) != 1 || data["password"] != "dHdv" {
						b.t.Errorf("data is %v, want the password alone", data)
					}
				}},
			},
		},
		"immutable ConfigMap": {
			why: "its contents change under the same name",
			steps: []everyStep{
				{manifest: fixed},
				{manifest: edited(fixed, "debug", "info"), says: []string{"ConfigMap $NS/conf", "immutable", "$OP/immutable-policy: recreate"}},
				{manifest: annotatedWith(edited(fixed, "debug", "info"), "immutable-policy", "recreate")},
			},
			replaced: []string{"ConfigMap/conf"},
		},
		"ConfigMap of more than 1 MiB": {
			why: "somebody puts dashboards into it",
			steps: []everyStep{
				{manifest: edited(everydayConf, "debug", strings.Repeat("x", 1<<20+1)), says: []string{"ConfigMap $NS/conf", "1048576"}},
				{manifest: edited(everydayConf, "debug", strings.Repeat("x", 1<<20-1000))},
			},
		},
		"100 fields of others": {
			why: "a controller keeps its data in a ConfigMap of ours",
			steps: []everyStep{
				{manifest: everydayConf, then: crowded},
				{manifest: edited(everydayConf, "debug", "info"), then: stillCrowded},
			},
		},
		"roleRef": {
			why: "a binding gets another role",
			steps: []everyStep{
				{manifest: everydayBinding},
				{manifest: edit, says: []string{"RoleBinding $NS/web", "roleRef", "immutable", "$OP/immutable-policy: recreate"}},
				{manifest: annotatedWith(edit, "immutable-policy", "recreate")},
			},
			replaced: []string{"RoleBinding/web"},
		},
		"minAvailable becomes maxUnavailable": {
			why: "only one of the two may be set",
			steps: []everyStep{
				{manifest: everydayBudget},
				{manifest: edited(everydayBudget, "minAvailable", "maxUnavailable")},
			},
		},
	}
}

// adopted fails the test unless a ConfigMap that kubectl applied is as its manifest is now.
func adopted(b *bench) {
	live := b.live("conf")
	if want := map[string]string{"level": "debug"}; !maps.Equal(live.Data, want) {
		b.t.Errorf("data is %v, want %v", live.Data, want)
	}
}

// heldByOthers has others hold the ConfigMap while the component is being deleted.
func heldByOthers(b *bench) {
	b.waiting("ConfigMap "+b.namespace+"/conf", "example.org/theirs")
	b.merge("them", b.named("conf"), `{"metadata":{"finalizers":null}}`)
}
