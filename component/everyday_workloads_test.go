package component_test

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/testenv"
)

const everydayWeb = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: example.org/web:1
`

const everydayStore = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: store}
spec:
  serviceName: store
  replicas: 0
  selector: {matchLabels: {app: store}}
  template:
    metadata: {labels: {app: store}}
    spec:
      containers:
      - name: store
        image: example.org/store:1
  volumeClaimTemplates:
  - metadata: {name: data}
    spec:
      accessModes: [ReadWriteOnce]
      resources: {requests: {storage: 1Gi}}
`

const everydayJob = `
apiVersion: batch/v1
kind: Job
metadata: {name: migrate}
spec:
  suspend: true
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: migrate
        image: example.org/migrate:1
`

// deployed is the Deployment of the bench.
func (b *bench) deployed() *unstructured.Unstructured { return b.placed(b.manifests(everydayWeb)[0]) }

// webIs waits until the Deployment is rolled out with a value.
func (b *bench) webIs(why string, want any, path ...string) {
	b.t.Helper()
	testenv.Wait(b.t, b.admin, b.deployed(), why, func(u *unstructured.Unstructured) bool {
		got, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
		observed, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
		return got == want && observed == u.GetGeneration()
	})
}

// container waits until the first container of the Deployment is as ok says.
func (b *bench) container(why string, ok func(map[string]any) bool) {
	b.t.Helper()
	testenv.Wait(b.t, b.admin, b.deployed(), why, func(u *unstructured.Unstructured) bool {
		list, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
		first, _ := list[0].(map[string]any)
		return ok(first)
	})
}

// strategic patches the Deployment as commands of kubectl do.
func (b *bench) strategic(manager, body string) {
	b.t.Helper()
	if err := b.as(manager).Patch(b.t.Context(), b.deployed(), client.RawPatch(types.StrategicMergePatchType, []byte(body))); err != nil {
		b.t.Fatal(err)
	}
}

// kubectlScale is kubectl scale.
func (b *bench) kubectlScale(replicas string) {
	b.t.Helper()
	u := b.deployed()
	if err := b.as("kubectl").SubResource("scale").Patch(b.t.Context(), u, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":`+replicas+`}}`))); err != nil {
		b.t.Fatal(err)
	}
}

const restartedAt = "kubectl.kubernetes.io/restartedAt"

func everydayWorkloads() map[string]everyday { //nolint:funlen // a table
	front := edited(everydayWeb, "app: web", "app: front")
	labelled := edited(everydayStore, "metadata: {name: data}", "metadata: {labels: {chart: store-2}, name: data}")
	migrate2 := edited(everydayJob, "migrate:1", "migrate:2")
	return map[string]everyday{
		"selector of a Deployment": {
			why: "a chart adds a label to matchLabels",
			steps: []everyStep{
				{manifest: everydayWeb},
				{manifest: front, says: []string{"Deployment $NS/web", "spec.selector", "immutable", "$OP/immutable-policy: recreate"}},
				{manifest: annotatedWith(front, "immutable-policy", "recreate")},
			},
			replaced: []string{"Deployment/web"},
		},
		"claim templates of a StatefulSet": {
			why: "a chart puts its version into labels of the templates",
			steps: []everyStep{
				{manifest: everydayStore},
				{manifest: labelled, says: []string{"StatefulSet $NS/store", "spec.volumeClaimTemplates", "immutable", "$OP/immutable-policy: recreate"}},
				{
					manifest: annotatedWith(labelled, "immutable-policy", "recreate"),
					says:     []string{"StatefulSet $NS/store", "$OP/accept-data-loss"},
				},
				{manifest: edited(annotatedWith(labelled, "immutable-policy", "recreate"), "{$OP/", "{$OP/accept-data-loss: \"true\", $OP/")},
			},
			replaced: []string{"StatefulSet/store"},
		},
		"StatefulSet with OnDelete": {
			why: "its Pods keep the old template until somebody deletes them",
			steps: []everyStep{
				{manifest: everydayOnDelete},
				{manifest: edited(everydayOnDelete, "store:1", "store:2")},
			},
		},
		"template of a Job": {
			why: "a migration gets another image",
			steps: []everyStep{
				{manifest: everydayJob, says: []string{"Job $NS/migrate", "suspended"}, waits: true},
				{manifest: migrate2, says: []string{"Job $NS/migrate", "spec.template", "immutable", "$OP/immutable-policy: recreate"}},
				{manifest: annotatedWith(migrate2, "immutable-policy", "recreate"), says: []string{"Job $NS/migrate", "suspended"}, waits: true},
			},
			replaced: []string{"Job/migrate"},
		},
		"kubectl rollout restart": {
			why: "somebody restarts the Pods",
			steps: []everyStep{
				{manifest: everydayWeb, then: func(b *bench) {
					b.strategic("kubectl-rollout", `{"spec":{"template":{"metadata":{"annotations":{"`+restartedAt+`":"now"}}}}}`)
				}},
				{manifest: edited(everydayWeb, "web:1", "web:2"), then: func(b *bench) {
					b.webIs("restarted still", "now", "spec", "template", "metadata", "annotations", restartedAt)
				}},
			},
		},
		"kubectl scale": {
			why: "somebody scales what the manifest scales",
			steps: []everyStep{{manifest: everydayWeb, then: func(b *bench) {
				b.kubectlScale("3")
				b.webIs("as the manifest says", int64(1), "spec", "replicas")
			}}},
		},
		"kubectl scale, no replicas": {
			why: "somebody scales what the manifest does not scale",
			steps: []everyStep{
				{manifest: edited(everydayWeb, "replicas: 1", ""), then: func(b *bench) { b.kubectlScale("3") }},
				{manifest: edited(everydayWeb, "replicas: 1", "", "web:1", "web:2"), then: func(b *bench) {
					b.webIs("as scaled", int64(3), "spec", "replicas")
				}},
			},
		},
		"kubectl set image": {
			why: "somebody deploys another image",
			steps: []everyStep{{manifest: everydayWeb, then: func(b *bench) {
				b.strategic("kubectl-set", `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"example.org/web:9"}]}}}}`)
				b.container("the image of the manifest", func(c map[string]any) bool { return c["image"] == "example.org/web:1" })
			}}},
		},
		"kubectl set env": {
			why: "somebody adds a variable, and then the manifest has it with valueFrom",
			steps: []everyStep{
				{manifest: everydayWeb, then: func(b *bench) {
					b.strategic("kubectl-set", `{"spec":{"template":{"spec":{"containers":[{"name":"web","env":[{"name":"LEVEL","value":"debug"}]}]}}}}`)
				}},
				{manifest: everydayWeb + everydayValueFrom, then: func(b *bench) { b.container("only valueFrom", onlyValueFrom) }},
			},
		},
		"value becomes valueFrom": {
			why: "a variable moves into a ConfigMap",
			steps: []everyStep{
				{manifest: everydayWeb + `        env: [{name: LEVEL, value: debug}]`},
				{manifest: everydayWeb + everydayValueFrom, then: func(b *bench) { b.container("only valueFrom", onlyValueFrom) }},
				{manifest: everydayWeb + `        env: [{name: LEVEL, value: debug}]`},
			},
		},
		"strategy Recreate": {
			why: "the API server has set rollingUpdate, which Recreate forbids",
			steps: []everyStep{
				{manifest: everydayWeb},
				{manifest: edited(everydayWeb, "replicas: 1", "replicas: 1\n  strategy: {type: Recreate}")},
				{manifest: everydayWeb},
			},
		},
		"paused Deployment": {
			why: "a Deployment is created paused",
			steps: []everyStep{
				{manifest: edited(everydayWeb, "replicas: 1", "replicas: 1\n  paused: true"), says: []string{"Deployment $NS/web", "is paused"}, waits: true},
				{manifest: everydayWeb},
			},
		},
		"rollout that cannot finish": {
			why: "no node fits",
			steps: []everyStep{
				{
					manifest: edited(everydayWeb, "replicas: 1", "replicas: 1\n  progressDeadlineSeconds: 1", "      containers:", "      nodeSelector: {no: node}\n      containers:"),
					says:     []string{"Deployment $NS/web", "rogress deadline"},
				},
				{manifest: everydayWeb},
			},
		},
		"ResourceQuota": {
			why:    "the namespace has no room for Pods",
			theirs: "{apiVersion: v1, kind: ResourceQuota, metadata: {name: none}, spec: {hard: {pods: \"0\"}}}",
			before: func(b *bench) {
				quota := b.placed(b.manifests("{apiVersion: v1, kind: ResourceQuota, metadata: {name: none}}")[0])
				testenv.Wait(b.t, b.admin, quota, "counted", func(u *unstructured.Unstructured) bool {
					_, counted, _ := unstructured.NestedString(u.Object, "status", "hard", "pods")
					return counted
				})
			},
			steps: []everyStep{
				{manifest: everydayWeb, says: []string{"Deployment $NS/web", "exceeded quota: none"}, waits: true},
				{manifest: edited(everydayWeb, "replicas: 1", "replicas: 0")},
			},
		},
		"quantities in other notations": {
			why: "the API server stores 1000m as 1, and 1000M as 1G",
			steps: []everyStep{
				{manifest: everydayWeb + `        resources: {requests: {cpu: 1000m, memory: 1000M}, limits: {cpu: 1.5, memory: 3072Mi}}`},
				{manifest: everydayWeb + `        resources: {requests: {cpu: 1, memory: 1G}, limits: {cpu: 1500m, memory: 3Gi}}`},
			},
		},
		"empty and null fields": {
			why: "templates render empty maps and lists",
			steps: []everyStep{
				{manifest: edited(everydayWeb, "metadata: {name: web}", "metadata: {name: web, annotations: null, labels: {}, creationTimestamp: null}",
					"      containers:", "      nodeSelector: {}\n      tolerations: []\n      affinity: null\n      volumes: null\n      securityContext: {}\n      containers:") +
					"        env: []\n        resources: {limits: {}, requests: null}\n        volumeMounts: []\n"},
				{manifest: everydayWeb},
			},
		},
		"name with a hash": {
			why: "kustomize gives a ConfigMap another name when its contents change",
			steps: []everyStep{
				{manifest: everydayHashed},
				{manifest: edited(everydayHashed, "conf-1", "conf-2", "      containers:", "      nodeSelector: {no: node}\n      containers:"), says: []string{"Deployment $NS/web"}, waits: true, then: func(b *bench) {
					b.fence()
					b.live("conf-1") // Pods of the old template may need it
				}},
				{manifest: edited(everydayHashed, "conf-1", "conf-2"), then: func(b *bench) {
					testenv.Gone(b.t, b.admin, b.named("conf-1"), "no longer used")
				}},
			},
		},
	}
}

const everydayHashed = everydayWeb + `        envFrom: [{configMapRef: {name: conf-1}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: conf-1}
data: {level: debug}
`

var everydayOnDelete = edited(everydayStore[:strings.Index(everydayStore, "  volumeClaimTemplates")], //nolint:gochecknoglobals // a manifest
	"replicas: 0", "replicas: 1\n  updateStrategy: {type: OnDelete}")

const everydayValueFrom = `        env: [{name: LEVEL, valueFrom: {configMapKeyRef: {name: conf, key: level}}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: conf}
data: {level: debug}
`

func onlyValueFrom(container map[string]any) bool {
	env, _, _ := unstructured.NestedSlice(container, "env")
	if len(env) != 1 {
		return false
	}
	first, _ := env[0].(map[string]any)
	return first["name"] == "LEVEL" && first["value"] == nil && first["valueFrom"] != nil
}
